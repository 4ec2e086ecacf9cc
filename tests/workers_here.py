"""Workers that need no other process."""

from setrnn.scale.workers import Outcome, Station, count_lacks, describe_failure


class WorkersHere:
    """One worker in this process; it may be told to stop after some tasks."""

    n_workers = 1

    def __init__(self, work, n_tasks=None):
        self.worker, self.n_tasks, self.task = work.start(), n_tasks, None
        self.station = Station()

    def has_room(self):
        return self.task is None

    def submit(self, task):
        self.task = task

    def wait(self, seconds):
        if self.task is None:
            return []
        task, self.task = self.task, None
        if self.n_tasks == 0:
            raise KeyboardInterrupt
        self.n_tasks = None if self.n_tasks is None else self.n_tasks - 1
        try:
            return [Outcome(task, self.worker(task, lambda n: None))]
        except Exception as error:  # noqa: BLE001
            outcome = Outcome(task, failure=describe_failure(error))
            count_lacks(outcome, self.station, [self.station])
            return [outcome]

    def n_ready(self):
        return 1

    def n_documents(self):
        return 0

    def close(self):
        pass

// Buttons, badges and counts around the document and the queue.

import { desk, PASTED } from "./desk.js";
import { at, number, say } from "./elements.js";
import { canUndo } from "./history.js";
import { countOf } from "./queue.js";
import { MOST_SHOWN } from "./reading.js";

export function drawFrame() {
  const { position, decision, document } = desk.current;
  const isQueued = position !== PASTED;
  const name = isQueued ? (document.id ?? `Document ${number(position + 1)}`) : "Document";
  at("document-title").textContent = name;
  say(at("document-status"), decision.status === "open" ? "" : decision.status);
  at("edit").hidden = isQueued || document.text.length > MOST_SHOWN; // no field can take that
  at("new").hidden = isQueued;
  at("done-text").textContent = isQueued ? "Done: take this set, next" : "Done: take this set";
  at("done").disabled = decision.status === "done" && !isQueued;
  at("save").hidden = isQueued || decision.status !== "done";
  at("undo").disabled = !canUndo();
  drawQueue(desk.queue);
}

function drawQueue(queue) {
  at("queue").hidden = queue === null;
  if (queue === null) return;
  const nDone = countOf(queue, "done");
  const nSkipped = countOf(queue, "skipped");
  const skipped = nSkipped ? `, ${number(nSkipped)} skipped` : "";
  at("queue-name").textContent = queue.name;
  at("queue-place").textContent = `${number(queue.place + 1)} of ${number(queue.n)}`;
  at("queue-done").textContent = `${number(nDone)} done${skipped}`;
  at("queue-progress").max = queue.n;
  at("queue-progress").value = nDone;
  at("previous").disabled = queue.place === 0;
  at("next").disabled = queue.place === queue.n - 1;
  at("export").disabled = nDone === 0;
  at("export").textContent = nDone ? `Export ${number(nDone)}` : "Export";
  at("order").value = queue.orderBy;
}

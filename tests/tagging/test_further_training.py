from setrnn.config import Config, TrainingSettings
from setrnn.tagging.further_training import choose_schedule, read_training_changes


def test_settings_of_the_user_win_over_the_shorter_schedule():
    config = Config(training=TrainingSettings(epochs=20, batch_size=64, learning_rate=0.004))
    changes = read_training_changes({"training.batch_size": 8})
    training = choose_schedule(config, changes).training
    assert training.batch_size == 8
    assert training.epochs < 20
    assert training.learning_rate < 0.004

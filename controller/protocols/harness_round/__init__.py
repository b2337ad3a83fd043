"""harness-round: harness against harness on the same tasks, three repeats, sealed tasks, Holm decisions."""

"""cost-index: the cost per verified outcome of several stacks on the same task instances, outcome by outcome."""

"""fairtrial: benchmarks of coding-agent harnesses whose every attempt, dollar and exclusion can be proven."""

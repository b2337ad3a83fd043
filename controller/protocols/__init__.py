"""Study protocols on the one engine: what each adds in records, rules and decisions. Pure."""

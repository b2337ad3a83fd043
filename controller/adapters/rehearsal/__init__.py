"""The rehearsal model: a scripted upstream that needs no key and no network.

It speaks the Anthropic Messages, OpenAI Chat Completions and OpenAI Responses dialects and plays a task's script
through whatever shell tool the harness offers. Results made with it are marked and can't be published as measurements.

This package's root imports nothing, so that reading a script (`rehearsal.script`) does not load a web server.
"""

"""The project's figures: each module is a program that measures one thing and writes ``results/<name>.json``."""

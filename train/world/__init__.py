"""The small world the embedded model is raised in: tables of facts and grammars that turn them into talk."""

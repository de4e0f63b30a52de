"""The person's files and commands, behind seams an editor may take over."""

"""The named profiles that ship with the project: HCP documents with their prompts."""

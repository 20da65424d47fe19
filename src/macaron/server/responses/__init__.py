"""The Responses API and its Conversations: what is kept, how it runs, and how it is asked for."""

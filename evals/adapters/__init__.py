"""The only modules that name a heavy library; each imports it inside the function that needs it."""

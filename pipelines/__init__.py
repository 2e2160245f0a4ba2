"""The edges that run Pawl: the project's configuration, the work on workers, the command line."""

"""What `pawl up` starts and ends: Ray head, Dagster's code server, webserver and daemon, the app.

``part`` is one process, ``leftovers`` ends what a killed `pawl up` left behind, ``parts`` says
which processes a project needs, ``supervisor`` keeps them running, and ``dagster_runs`` tells a run
of Dagster's that goes on from one whose process is gone.
"""

"""The core: what is asked of a checkpoint, how answers are judged, and what follows from them.

Read the modules in the order of the job: identity, checkpoint, suite, task, plan, response,
engine, scoring, compare, policy, gate, job. ``stats`` holds numbers in, numbers out; ``tasks``
Pawl's own generated tasks; ``sandbox`` isolated execution; ``adapters`` the only modules that
name a heavy library.
"""

"""The RL lab: small, real RL runs, sound and faulty, to try Pawl on.

In the order of a run: ``language`` (tokenizer and chat template), ``model`` (shape, reading and
writing), ``warm_up`` (the supervised start, whose weights lie in ``warm/``), ``questions`` (what is
asked in training), ``generator``, ``reward`` and ``trainer`` (the executors), ``objective`` (what
the trainer maximises), ``controller`` (the loop), ``run_folder`` (what a run writes) and ``table``
(many runs through the gate). ``packing`` computes several answers to one question at once.
"""

# SPDX-License-Identifier: MIT
"""What the lab compares: a row for each way to run a program on a machine with fast and slow memory."""
import shlex

import workloads


class Contender:
    """How the program is started, and what root sets before."""

    def __init__(self, name, about, prefix='', switch='', env=None, late=True, everything_fast=False,
                 needs=()):
        self.name = name
        self.about = about
        self.prefix = prefix            # words before the program's
        self.switch = switch            # shell, as root, when the program has filled its memory
        self.env = env                  # the library is preloaded, with these variables
        self.late = late                # fast nodes are full while the program fills its memory
        self.everything_fast = everything_fast
        self.needs = needs              # programs of this machine

    def start(self, settings):
        """Words, for a shell, that go before the program's own."""
        words = shlex.split(self.prefix)
        if self.env is not None:
            env = {'LD_PRELOAD': workloads.FOLDER + '/libnumalift.so', **self.env, **settings.env}
            words += ['env'] + ['%s=%s' % pair for pair in env.items()]
        return shlex.join(words)


BALANCING = 'echo %d > /proc/sys/kernel/numa_balancing'
DEMOTION = 'echo 1 > /sys/kernel/mm/numa/demotion_enabled'

CONTENDERS = [
    Contender('none', 'no balancing: pages stay where they were first touched'),
    Contender('numalift', 'preloaded, with the sampler that it chooses', env={'NUMALIFT_PROMOTE': 'on'}),
    Contender('balancing-1', "the kernel's NUMA balancing", switch=BALANCING % 1),
    Contender('balancing-2', "the kernel's memory tiering, with demotion",
              switch=BALANCING % 2 + '\n' + DEMOTION),
    Contender('interleave', 'numactl --interleave=all, all nodes free from the beginning',
              prefix='numactl --interleave=all', late=False, needs=['numactl']),
    Contender('fast', 'fast nodes that hold all of it: the limit', late=False, everything_fast=True),
] + [
    Contender('numalift-' + sampler.replace('+', '-'), 'preloaded, sampler ' + sampler,
              env={'NUMALIFT_PROMOTE': 'on', 'NUMALIFT_SAMPLER': sampler})
    for sampler in ('rwp', 'wp+refs', 'wp', 'refs', 'dirty', 'kernel')
]

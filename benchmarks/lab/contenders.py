# SPDX-License-Identifier: MIT
"""What the lab compares: a row for each way to run a program on a machine with fast and slow memory."""
import shlex

import workloads


class Contender:
    """How the program is started, and what root does before."""

    def __init__(self, name, about, prefix='', ready='', switch='', env=None, late=True,
                 everything_fast=False, needs=(), libraries=(), own=(), by_counts=False, only=()):
        self.name = name
        self.about = about
        self.prefix = prefix            # words before the program's; of %(...)s those of start() are there
        self.ready = ready              # shell, as root, before all else; `absent WHY` when it cannot run here
        self.switch = switch            # and when the program has filled its memory
        self.env = env                  # the library is preloaded, with these variables
        self.late = late                # fast nodes are full while the program fills its memory
        self.everything_fast = everything_fast
        self.needs = needs              # programs of this machine
        self.libraries = libraries      # and shared libraries, with their packages
        self.own = own                  # files of the lab
        self.by_counts = by_counts      # placed by what a run before has counted, see onerun.py
        self.only = only                # workloads; (): all

    def start(self, settings, workload, folder=workloads.FOLDER):
        """Words, for a shell, that go before the program's own. In the folder are the lab's programs."""
        words = [word % {'folder': folder, 'fast': workloads.FAST, 'slow': SLOW,
                         'room': workload.room, 'rest': max(1, workload.size - workload.room)}
                 for word in shlex.split(self.prefix)]
        if self.env is not None:
            env = {'LD_PRELOAD': workloads.FOLDER + '/libnumalift.so', **self.env, **settings.env}
            words += ['env'] + ['%s=%s' % pair for pair in env.items()]
        return shlex.join(words)


SLOW = '2'
PID = '/tmp/program'    # whose pages are moved by counts

BALANCING = 'echo %d > /proc/sys/kernel/numa_balancing'
DEMOTION = 'echo 1 > /sys/kernel/mm/numa/demotion_enabled'

# As the nodes' bandwidths; newer kernels would find nearly the same weights themselves.
WEIGHTS = '''
cd /sys/kernel/mm/mempolicy/weighted_interleave 2> /dev/null || absent 'no weighted interleave (Linux 6.9)'
echo 4 > node0
echo 4 > node1
echo 1 > node2
cd /
'''

# Locked memory is moved by it, too: what only takes room away is told apart by its control group.
DAMON_READY = '''
why=$(sh %s/damon.sh check 2>&1) || absent "$why"
cd /sys/fs/cgroup
echo +memory > cgroup.subtree_control
mkdir ballast
echo $$ > ballast/cgroup.procs
cd /
''' % workloads.FOLDER

STARTER = '%(folder)s/starter'

CONTENDERS = [
    Contender('none', 'no balancing: pages stay where they were first touched'),
    Contender('numalift', 'preloaded, with the sampler that it chooses', env={'NUMALIFT_PROMOTE': 'on'}),
    Contender('balancing-1', "the kernel's NUMA balancing", switch=BALANCING % 1),
    Contender('balancing-2', "the kernel's memory tiering, with demotion",
              switch=BALANCING % 2 + '\n' + DEMOTION),
    Contender('interleave', 'numactl --interleave=all, all nodes free from the beginning',
              prefix='numactl --interleave=all', late=False, needs=['numactl']),
    Contender('weighted', 'weighted interleave by bandwidth, all nodes free from the beginning',
              prefix=STARTER + ' --weighted %(fast)s,%(slow)s', ready=WEIGHTS, late=False, own=('starter',)),
    Contender('memtier', "memkind's libmemtier, as much of malloc on fast nodes as fits, all nodes free from "
              'the beginning',
              prefix='env LD_PRELOAD=libmemtier.so.0 MEMKIND_DAX_KMEM_NODES=%(slow)s '
              'MEMKIND_MEM_TIERS=KIND:DRAM,RATIO:%(room)d;KIND:KMEM_DAX,RATIO:%(rest)d;POLICY:STATIC_RATIO',
              late=False, libraries=(('libmemtier.so.0', 'libmemkind0'),)),
    Contender('damon', "the kernel's DAMON, self-tuned: hot pages up, cold ones down", ready=DAMON_READY,
              switch='sh %s/damon.sh start %s %s' % (
                  workloads.FOLDER, SLOW, workloads.FAST.replace(',', ' ')), own=('damon.sh',)),
    Contender('oracle', 'the hottest pages that fit are on fast nodes from the beginning, and stay there',
              by_counts=True),
    Contender('fast', 'fast nodes that hold all of it: the limit', late=False, everything_fast=True),
] + [
    Contender('window-' + window, 'as numalift, and promotes %s in advance' % about, only=('scan', 'sb-ranges'),
              env={'NUMALIFT_PROMOTE': 'on', 'NUMALIFT_WINDOW': window})
    for window, about in (('0', 'nothing'), ('16K', 'always 16 KiB'))
] + [
    Contender('numalift-' + sampler.replace('+', '-'), 'preloaded, sampler ' + sampler,
              env={'NUMALIFT_PROMOTE': 'on', 'NUMALIFT_SAMPLER': sampler})
    for sampler in ('rwp', 'wp+refs', 'wp', 'refs', 'dirty', 'kernel')
]

# The two runs of a contender by counts: nothing is moved in the first, and the second has the same addresses.
COUNTING = Contender('counting', 'all slow, the misses of each page counted',
                     prefix=STARTER + ' --fixed --pid ' + PID,
                     switch='%s/placer map $(cat %s) > /out/map' % (workloads.FOLDER, PID),
                     own=('starter', 'placer'))
PLACED = Contender('placed', 'by these counts', prefix=STARTER + ' --fixed --pid ' + PID,
                   switch='%s/placer place $(cat %s) %s %s $(cat /tmp/room_pages) < %s/hottest > /out/placed' % (
                       workloads.FOLDER, PID, workloads.FAST, SLOW, workloads.FOLDER),
                   own=('starter', 'placer'))

"""What is measured of the agent while it works, and what of it must be flat."""
import collections
import os
import statistics
import threading
import time

SLACK_FILES = 20  # a ledger for each config, made when there is something to write in it


def read_status(pid):
    """{field: number} of /proc/PID/status: kB, or a count."""
    with open(f'/proc/{pid}/status', encoding='ascii', errors='replace') as f:
        fields = (line.split() for line in f)
        return {words[0].rstrip(':'): int(words[1]) for words in fields if len(words) > 1 and words[1].isdigit()}


def descriptors(pid):
    """{kind: how many}; a socket is a kind, and each file is."""
    kinds = collections.Counter()
    for fd in os.listdir(f'/proc/{pid}/fd'):
        try:
            kinds[os.readlink(f'/proc/{pid}/fd/{fd}').split(':[')[0]] += 1
        except OSError:  # closed meanwhile
            continue
    return kinds


def count_files(places):
    """Of all directories below them, too."""
    return sum(len(files) + len(folders) for place in places for _, folders, files in os.walk(place))


def processor_seconds(pid):
    with open(f'/proc/{pid}/stat', encoding='ascii', errors='replace') as f:
        fields = f.read().rsplit(') ', 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf('SC_CLK_TCK')


class Sample:
    def __init__(self, pid, places):
        status = read_status(pid)
        self.rss, self.anonymous, self.threads = status['VmRSS'], status['RssAnon'], status['Threads']
        self.descriptors, self.files = sum(descriptors(pid).values()), count_files(places)


class Sampler:
    """A sample each few seconds, in a list for each phase."""

    def __init__(self, pid, places, seconds):
        self.pid, self.places, self.seconds, self.phases, self.thread = pid, places, seconds, [], None
        self.stop = threading.Event()

    def begin(self):
        self.stop.clear()
        self.phases.append([])
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self):
        while not self.stop.wait(self.seconds):
            self.phases[-1].append(Sample(self.pid, self.places))

    def end(self):
        self.stop.set()
        self.thread.join()


def wait_for_quiet(agent):
    """Until no pull is under way and no connection comes or goes for a second; what is open then, by kind."""
    end, since, before = time.monotonic() + 60, time.monotonic(), None
    while time.monotonic() < end:
        now = descriptors(agent.pid)
        if now != before:
            since, before = time.monotonic(), now
        if time.monotonic() - since > 1:
            break
        time.sleep(0.05)
    return before


def flaws_of(sampler, quiet):
    """What is not flat. `quiet`: two of (descriptors by kind, files, threads, descriptors of readers), after the first third and at the end."""
    first, rest = sampler.phases
    third = rest[len(rest) // 2:]
    found = []
    for name, slack in (('rss', 1024), ('anonymous', 1024)):
        early = statistics.median(getattr(s, name) for s in first[-max(1, len(first) // 4):])
        late = statistics.median(getattr(s, name) for s in third)
        if late > early + max(slack, early * 0.03):
            found.append(f'memory ({name}) grew from {early:.0f} to {late:.0f} kB')
    for before, after, what in zip(*quiet, ('descriptors', 'files', 'threads', 'descriptors of readers')):
        more = after - before if what == 'files' else 0
        if more > SLACK_FILES or more == 0 and before != after:
            found.append(f'{what} were {before}, are {after}')
    return found

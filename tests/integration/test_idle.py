"""An idle agent: its own memory, no wake-up while nothing is due, descriptors closed on exec, a bounded number of threads."""
import os
import re
import signal
import threading

import harness
from harness import Agent, FaultServer, Program, good


def threads(pid):
    """{name: voluntary and involuntary context switches} of each thread."""
    result = {}
    for tid in os.listdir(f'/proc/{pid}/task'):
        with open(f'/proc/{pid}/task/{tid}/status', encoding='ascii') as f:
            fields = dict(line.split(':', 1) for line in f)
        name = fields['Name'].strip() + ('' if tid != str(pid) else ' (loop)')
        result[name] = int(fields['voluntary_ctxt_switches']) + int(fields['nonvoluntary_ctxt_switches'])
    return result


def memory(pid, field):
    with open(f'/proc/{pid}/status', encoding='ascii') as f:
        return next(int(line.split()[1]) for line in f if line.startswith(field + ':'))


def descriptors(pid):
    found = []
    for fd in os.listdir(f'/proc/{pid}/fd'):
        try:
            found.append(os.readlink(f'/proc/{pid}/fd/{fd}'))
        except FileNotFoundError:
            pass  # closed meanwhile
    return sorted(found)


@harness.needs(harness.LOOK)
class Idle(harness.Case):
    def setUp(self):
        super().setUp()
        self.server = FaultServer(self)
        self.server.behave = good(b'a: 1\n', 'ETag: "1"\r\n')

    def switches_while_idle(self, pid):
        """What each thread did in some seconds. Time itself is what is looked at here, so it has to pass: first until the last of the work
        is done, which is so when no thread but those that heartbeats wake ran for half a second."""
        def at_rest():
            before = threads(pid)
            threading.Event().wait(0.5)
            after = threads(pid)
            return all(after.get(name) == count for name, count in before.items() if not re.search('push|ZMQ', name))
        self.until(at_rest, 'the agent is never idle')
        before = threads(pid)
        threading.Event().wait(5)
        return {name: count - before[name] for name, count in threads(pid).items()}

    def test_nothing_wakes_while_nothing_is_due(self):
        agent = Agent(self, self.config(self.server.url + '/web.yaml', '    interval: 1h\n'))
        agent.refresh()
        switches = self.switches_while_idle(agent.pid)
        print('context switches in 5 s:', switches)
        self.assertEqual(switches[next(n for n in switches if 'loop' in n)], 0, switches)
        if not harness.SANITIZED:
            self.assertEqual(sum(switches.values()), 0, switches)
        agent.stop()

    def test_with_push_only_heartbeats_wake_and_never_the_loop(self):
        _, _, endpoint = self.serve('--heartbeat', '1s')
        agent = Agent(self, self.config(self.server.url + '/web.yaml', '    interval: 1h\n', push=f'push:\n  - endpoint: {endpoint}\n'))
        agent.log.wait('push channel connected')
        agent.refresh()
        switches = self.switches_while_idle(agent.pid)
        print('with push:', switches)
        self.assertEqual(switches[next(n for n in switches if 'loop' in n)], 0, switches)
        self.assertGreater(switches['pullet-push'], 0)
        agent.stop()

    def test_own_memory_is_at_most_3_mb(self):
        if harness.SANITIZED:
            return  # the sanitizers' own memory is not ours
        _, _, endpoint = self.serve()
        agent = Agent(self, self.config(self.server.url + '/web.yaml', '    interval: 1h\n', push=f'push:\n  - endpoint: {endpoint}\n'))
        agent.log.wait('push channel connected')
        agent.refresh()
        print('RssAnon', memory(agent.pid, 'RssAnon'), 'kB; RssFile', memory(agent.pid, 'RssFile'), 'kB; threads', list(threads(agent.pid)))
        self.assertLessEqual(memory(agent.pid, 'RssAnon'), 3 * 1024)
        self.assertLessEqual(len(os.listdir(f'/proc/{agent.pid}/task')), 6)
        agent.stop()

    def test_a_thousand_configs_of_one_server_share_its_connections_and_6_mb(self):
        self.server.behave = good(b'a: 1\n', 'ETag: "1"\r\n')
        text = self.config(self.server.url + '/c0.yaml', '    interval: 1h\n', name='c0')
        for i in range(1, 1000):
            text += f'  c{i}:\n    url: {self.server.url}/c{i}.yaml\n    file: {self.path(f"out/c{i}.yaml")}\n    interval: 1h\n'
        agent = Agent(self, text)
        for i in range(1000):
            agent.log.wait(f'published.*config=c{i} ')
        agent.refresh('c999')
        with self.server.lock:
            self.assertLessEqual(len(self.server.open), 8)
        if not harness.SANITIZED:
            print('1,000 configs: RssAnon', memory(agent.pid, 'RssAnon'), 'kB;', len(descriptors(agent.pid)), 'descriptors')
            self.assertLessEqual(memory(agent.pid, 'RssAnon'), 6 * 1024)
        self.assertLessEqual(len(descriptors(agent.pid)), 40)
        agent.stop()

    def test_memory_and_descriptors_do_not_grow(self):
        agent = Agent(self, self.config(self.server.url + '/web.yaml', '    interval: 1h\n'))
        for i in range(300):
            self.server.behave = good(f'a: {i}\n'.encode(), f'ETag: "{i}"\r\n')
            agent.refresh()
            if i == 100:  # 200 pulls later; a control connection may just be closing
                before = memory(agent.pid, 'RssAnon'), descriptors(agent.pid)
        after = memory(agent.pid, 'RssAnon'), descriptors(agent.pid)
        # the last version may be on its way to the disk (its file and directory), a control connection may just be closing
        self.assertLessEqual(len(after[1]), len(before[1]) + 5, f'{before} {after}')
        if not harness.SANITIZED:
            self.assertLessEqual(after[0] - before[0], 256, f'{before} {after} kB')
        agent.stop()

    def test_every_descriptor_is_closed_on_exec(self):
        _, _, endpoint = self.serve()
        agent = Agent(self, self.config(self.server.url + '/web.yaml', '    interval: 1h\n', push=f'push:\n  - endpoint: {endpoint}\n'))
        agent.log.wait('push channel connected')
        agent.refresh()
        left_open = []
        for fd in os.listdir(f'/proc/{agent.pid}/fd'):
            try:
                with open(f'/proc/{agent.pid}/fdinfo/{fd}', encoding='ascii') as f:
                    flags = int(next(line for line in f if line.startswith('flags')).split()[1], 8)
            except FileNotFoundError:
                continue  # closed meanwhile
            if int(fd) > 2 and not flags & os.O_CLOEXEC:
                left_open.append((fd, os.readlink(f'/proc/{agent.pid}/fd/{fd}')))
        self.assertEqual(left_open, [])
        agent.stop()


if __name__ == '__main__':
    harness.main()

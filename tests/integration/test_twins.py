"""Many agents on one state directory, started at the same moment, killed, stopped: exactly one runs at any time, and each of the others says which."""
import os
import re
import signal

import harness
from harness import Agent, FaultServer, Program, good

AGENTS = 6
IN_USE = r'another pulletd uses this state directory: .* path=\S+/state pid=(\d+)$'


class Twins(harness.Case):
    def setUp(self):
        super().setUp()
        self.server, self.number = FaultServer(self), 0
        self.publish()

    def publish(self):
        self.number += 1
        self.server.behave = good(b'n: %d\n' % self.number, f'ETag: "{self.number}"\r\n')

    def start_all(self):
        """At the same moment, each with a runtime directory and a file of its own; (the one that runs, those that have ended)."""
        agents = []
        for i in range(AGENTS):
            corner = harness.Corner(self, f'{self.number}-{i}')
            text = self.config(self.server.url + '/web.yaml', '    interval: 1h\n').replace(self.path('run'), corner.path('run'))
            agents.append(Agent(corner, text.replace(self.path('out/'), corner.path(''))))
        others = [agent for agent in agents if self.ended(agent)]
        self.assertEqual(len(others), AGENTS - 1, 'exactly one runs')
        return next(agent for agent in agents if agent not in others), others

    def ended(self, agent):
        """True when it gave up, false when it is ready; one of both comes."""
        line = agent.log.wait('another pulletd|published config=web|started from the last known good')
        return bool(re.search('another pulletd', line))

    def check_others(self, one, others):
        for other in others:
            lines = [line for line in other.log.drain() if re.search(IN_USE, line)]
            self.assertEqual([int(re.search(IN_USE, line)[1]) for line in lines], [one.pid], other.log.seen)
            self.assertNotEqual(other.wait(), 0)
            self.assertFalse(os.path.exists(other.test.path('web.yaml')), 'who does not run writes nothing')

    def test_of_many_one_runs_and_the_others_name_it_also_after_it_was_killed(self):
        generation = 0
        for _ in range(4):
            one, others = self.start_all()
            self.check_others(one, others)
            self.publish()
            one.refresh()
            self.assertEqual(one.status()['generation'], generation + 1 if generation else 2)
            generation = one.status()['generation']
            one.signal(signal.SIGKILL)
            one.wait()
            one.close()
            self.assertTrue(os.path.exists(self.path('state/.lock')), 'the lock file of the dead one lies there')

    def test_one_that_is_stopped_still_has_it(self):
        one, _ = self.start_all()
        one.signal(signal.SIGSTOP)
        for _ in range(2):
            corner = harness.Corner(self, f'late-{_}')
            late = Program([harness.PULLETD, '-c', self.late_config(corner)])
            self.addCleanup(late.close)
            self.assertEqual(re.search(IN_USE, '\n'.join(late.log.drain()), re.M)[1], str(one.pid))
            self.assertEqual(late.wait(), 1)
        one.signal(signal.SIGCONT)
        self.publish()
        self.assertEqual(one.refresh()['outcome'], 'published')
        one.stop()

    def late_config(self, corner):
        corner.write('pullet.yaml', self.config(self.server.url + '/web.yaml').replace(self.path('run'), corner.path('run')))
        return corner.path('pullet.yaml')


if __name__ == '__main__':
    harness.main()

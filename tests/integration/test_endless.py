"""What servers send without end (HEAVY of misbehaviours.py), over HTTP and over TLS: it is given up at a bound of bytes, not of time, and costs little memory."""
import contextlib
import re

import harness
from misbehaviours import CAP, HEAVY
from test_misbehaviour import Table, document


class Endless(Table):
    def test_what_has_no_end_is_given_up_at_the_bound(self):
        """Of bytes: the server sends no more of them, so that who reads on runs into the time limit. Of memory: its peak."""
        self.start(HEAVY)
        self.stage, bad, worst = 'bad', [], 0
        for i, (name, _, words) in enumerate(self.rows):
            base = self.peak(forget=True)
            error = self.agent.refresh(f'c{i}')['error'] or 'nothing'
            grown = self.peak() - base
            if not re.search(words, error) or 'timed out' in error:
                bad.append(f'{name}: it says {error}')
            if grown > 2 * CAP >> 10 and not harness.SANITIZED:
                bad.append(f'{name}: {grown} KiB more')
            if self.read(f'out/{i}') != document(1):
                bad.append(f'{name}: the file is another one')
            worst = max(worst, grown)
        self.stage = 2
        self.refresh_all()
        self.until(lambda: self.published(2), self.missing)
        self.pushes(3)
        self.agent.stop()
        self.assertEqual(bad, [], '\n' + '\n'.join(bad))
        print(f'{len(self.rows)} without end: at most {worst} KiB more, of {2 * CAP >> 10}', flush=True)

    def peak(self, forget=False):
        """KiB. With `forget`: from now on, where the machine lets this user do that."""
        with contextlib.suppress(PermissionError):
            if forget:
                with open(f'/proc/{self.agent.pid}/clear_refs', 'w', encoding='ascii') as f:
                    f.write('5')
        with open(f'/proc/{self.agent.pid}/status', encoding='ascii') as f:
            return next(int(line.split()[1]) for line in f if line.startswith('VmHWM'))


if __name__ == '__main__':
    harness.main()

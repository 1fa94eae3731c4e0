"""What an operator decides before a power cut, for power_cut.py: an answer "done" means that it is there afterwards, where durability is strict."""
import http.client
import json


class Decided:
    """A config that is pulled, pinned, overridden and rolled back, at random. After a cut the pin and the override, each by its reason, must be
    those that were answered last, or asked for since; the generation is not lower, and if it is that one, it is of that version."""
    name, asked = 'decided', set()

    def __init__(self, world):
        self.world, self.random, self.offered, self.turn = world, world.random, 1, 0
        self.answered, self.pending, self.generation, self.done, self.said = (None, None), set(), 0, 0, []
        self.versions = {}  # of generations

    def serve(self, _document):
        return None if self.world.down else self.offered

    def visible(self):
        """To be forgotten after it what came later."""
        return self.answered, set(self.pending), self.generation

    def forget(self, visible):
        self.answered, self.pending, self.generation = visible

    def ask(self, path, pin=None, override=None):
        """What it makes of pin and override counts as soon as it is answered that it is done."""
        self.turn += 1
        self.pending.add((pin, override))
        code, body = self.world.agent.post(f'/v1/configs/decided/{path}')
        self.said = self.said[-2:] + [f'{path}: {code} {body.strip()}']
        answer = json.loads(body)
        if code == 200 and answer.get('outcome') in (None, 'published'):
            self.answered, self.pending, self.generation, self.done = (pin, override), set(), answer['generation'], self.done + 1
            if answer.get('version'):
                self.versions[self.generation] = answer['version']

    def step(self):
        pin, override = self.answered
        word = f'{self.turn}'
        if pin:
            self.ask('unpin')
        elif override:
            self.ask(f'override?key=line1&remove=1&wait=1&reason={word}')
        else:
            self.decide(word)

    def decide(self, word):
        what = self.random.choice(['publish', 'publish', 'pin', 'override', 'rollback'])
        old = [generation for generation, version in self.versions.items() if version != self.versions.get(self.generation)]
        if what == 'pin':
            self.ask(f'pin?reason={word}', pin=word)
        elif what == 'override':
            self.ask(f'override?key=line1&value={word}&for_ms=3600000&wait=1&reason={word}', override=word)
        elif what == 'rollback' and old:
            target, before = max(old), self.generation
            self.ask(f'rollback?generation={target}&wait=1&reason={word}')
            if self.generation != before:
                self.versions = {target: self.versions[target], self.generation: self.versions[target]}
        else:
            self.offered += 1
            self.ask('refresh?wait=1')

    def publish_on(self):
        try:
            while True:
                self.step()
        except (OSError, http.client.HTTPException, AssertionError, ValueError):
            if not self.world.is_cut.is_set():
                raise

    def read_on(self):
        """The others are read."""

    def flaw(self, strict):
        """After a cut; None when it is as it was answered. Where durability is not strict, nothing of this is promised."""
        status = self.world.agent.status('decided')
        state = status.get('pin', {}).get('reason'), (status.get('overrides') or [{}])[0].get('reason')
        version = self.versions.get(self.generation)
        lost = state not in {self.answered, *self.pending} or status['generation'] < self.generation
        if strict and (lost or version and status['generation'] == self.generation and status['version'] != version):
            return (f'what was decided is lost: (pin, override) are {state} at version {status["version"]} of generation {status["generation"]}, answered was '
                    f'{self.answered} at version {version} of {self.generation}, asked for {self.pending}; {self.said}')
        self.answered, self.pending, self.versions, self.generation = state, set(), {}, status['generation']
        self.offered += 1
        return None

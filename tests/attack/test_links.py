"""A local user owns a directory that a root agent reads from, and puts links to root's files there: nothing of them is shown or published."""
import os

import attack
import harness

SECRET = 'rootsecret-51ce'


@attack.needs_users
class Links(harness.Case):
    def test_nothing_of_roots_is_read_through_a_link_of_another_user(self):
        os.chmod(self.dir, 0o755)
        self.write('shadow', f'{SECRET}:x:1\n')
        os.chmod(self.path('shadow'), 0o600)
        os.makedirs(self.path('app/schemas'))
        for name in ('document', 'schema.json', 'token', 'schemas/defs.json'):
            os.symlink(self.path('shadow'), self.path(f'app/{name}'))
        for folder, folders, names in os.walk(self.path('app')):
            for name in ('.', *folders, *names):
                os.chown(os.path.join(folder, name), attack.MALLORY, attack.MALLORY, follow_symlinks=False)
        self.write('defs-user.json', '{"$ref": "defs.json"}')
        _, url, _ = self.serve()
        self.write('www/web.yaml', 'a: 1\n')
        out = self.path('out')
        os.makedirs(out)
        agent = harness.Agent(self, f'''agent: {{state_dir: {self.path("state")}, runtime_dir: {self.path("run")}, log: {{level: debug}}}}
servers:
  files: {{kind: file}}
  login: {{urls: ["{url.rstrip("/")}"], auth: {{bearer_file: {self.path("app/token")}}}}}
configs:
  document: {{from: [{{server: files, path: {self.path("app/document")}}}], type: bytes, mode: "0644", file: {out}/document}}
  schema: {{url: "{url.rstrip("/")}/web.yaml", schema: {self.path("app/schema.json")}, file: {out}/schema}}
  folder: {{url: "{url.rstrip("/")}/web.yaml", schema: {self.path("defs-user.json")}, schema_dir: {self.path("app/schemas")}, file: {out}/folder}}
  token: {{from: [{{server: login, path: /web.yaml}}], file: {out}/token}}
''')
        names = ('document', 'schema', 'folder', 'token')
        for name in names:
            agent.refresh(name)
        self.assertEqual(os.listdir(out), [])
        for name in names:
            self.assertIn('link of another user', agent.cli('status', name)[1].replace('\n', ' ').replace('  ', ' '), name)
        told = agent.cli('status', '--json')[1] + agent.get('/readyz')[1]
        agent.stop()
        self.assertNotIn(SECRET, told + '\n'.join(agent.log.drain()))


if __name__ == '__main__':
    harness.main()

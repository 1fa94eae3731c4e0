"""Spring Cloud Config Server's environment endpoint.

Source: spring-cloud/spring-cloud-config EnvironmentController, Environment, PropertySource, NoSuchLabelException and
EnvironmentNotFoundException handling, docs (quickstart, serving alternative formats, git backend, security); Spring Boot's error attributes.

Covered: GET /{application}/{profiles}[/{label}], several profiles, `(_)` for / in application and label, the order of the sources (the first
wins), `application` shared by all, typed values, lists as key[0], state and version, 404 for an unknown label, 200 with no sources for an
unknown application (404 with `accept_empty = False`), basic auth, a prefix, 500 as JSON when the backend fails.
Not covered: the flattened files (/{application}-{profile}.yml and so on: 404 here), plain files, encryption, the v2 media type with origins.
"""
import base64
import hashlib
import json
import urllib.parse

try:
    from servers import base
except ImportError:  # run by hand: this folder is where Python looks
    import base

Answer = base.Answer


def flatten(value, key=''):
    """A tree as a property source has it: a.b[0].c; null and empty lists are '', empty maps are nothing."""
    if isinstance(value, dict):
        return {k: v for name, item in value.items() for k, v in flatten(item, f'{key}.{name}' if key else str(name)).items()}
    if isinstance(value, list) and value:
        return {k: v for i, item in enumerate(value) for k, v in flatten(item, f'{key}[{i}]').items()}
    return {key: '' if value is None or value == [] else value}


class Spring(base.Server):
    """A config server over a git repository with one branch, `main`."""

    chunked = True
    repository = 'https://git.example/config-repo/'

    def __init__(self, test=None, port=0):
        self.prefix = ''
        self.default_label = 'main'
        self.accept_empty = True
        self.users = {}  # name: password; none: everybody may read
        self.broken = None  # a message: the backend fails with it
        self.versions = {}  # label: the version to show instead of a hash of what is there; None: none, as some backends
        self.labels = {self.default_label: {}}
        super().__init__(test, port)

    # -- data

    def put(self, application, values, profile='default', label=None):
        """One file of the repository, `application[-profile].yml`; the version now. A tree is flattened, flat keys stay as they are."""
        with self.changed:
            self.labels.setdefault(label or self.default_label, {})[application, profile] = flatten(values)
            return self.version(label)

    def delete(self, application, profile='default', label=None):
        with self.changed:
            self.labels[label or self.default_label].pop((application, profile), None)

    def version(self, label=None):
        label = label or self.default_label
        if label in self.versions:
            return self.versions[label]
        files = sorted((list(name), values) for name, values in self.labels[label].items())
        return hashlib.sha1(json.dumps(files).encode()).hexdigest()

    # -- the protocol

    def answer(self, request):
        if self.users:
            self._authenticate(request)
        path = request.raw_path
        if not path.startswith(self.prefix + '/'):
            raise base.spring_error(request, 404, 'No message available')
        # split before it is decoded: an encoded / is refused by the firewall of Spring Security
        parts = path[len(self.prefix) + 1:].split('/')
        if '%2f' in path.lower() or '//' in path or ';' in path:
            raise base.spring_error(request, 400, 'The request was rejected because the URL contained a potentially malicious String')
        if not 2 <= len(parts) <= 3 or not all(parts) or parts[-1].endswith(('.yml', '.yaml', '.properties', '.json')):
            raise base.spring_error(request, 404, 'No message available')
        if request.method not in ('GET', 'HEAD'):
            raise base.spring_error(request, 405, f"Request method '{request.method}' not supported")
        application, profiles, label = (list(map(urllib.parse.unquote, parts)) + [None])[:3]
        application = application.replace('(_)', '/')
        label = label.replace('(_)', '/') if label is not None else None
        if self.broken:
            raise base.spring_error(request, 500, self.broken)
        with self.changed:
            files = self.labels.get(label or self.default_label)
            if files is None:
                raise base.spring_error(request, 404, f'No such label: {label}')
            sources = []
            # the last profile wins over those before it, the application over `application`
            for profile in [*reversed(profiles.split(',')), 'default']:
                for name in dict.fromkeys((application, 'application')):
                    file = name + ('.yml' if profile == 'default' else f'-{profile}.yml')
                    if (name, profile) in files and not any(s['name'] == self.repository + file for s in sources):
                        sources.append({'name': self.repository + file, 'source': files[name, profile]})
            if not sources and not self.accept_empty:
                raise base.spring_error(request, 404, 'Profile Not found')
            return Answer(200, {'name': application, 'profiles': profiles.split(','), 'label': label, 'version': self.version(label), 'state': None,
                                'propertySources': sources})

    def _authenticate(self, request):
        scheme, _, text = (request.headers.get('Authorization') or '').partition(' ')
        try:
            name, colon, password = base64.b64decode(text, validate=True).decode().partition(':')
        except ValueError:
            name, colon, password = '', '', ''
        if scheme.lower() != 'basic' or not colon or self.users.get(name) != password:
            answer = base.spring_error(request, 401, 'Unauthorized')
            answer.headers['WWW-Authenticate'] = 'Basic realm="Realm"'
            raise answer


if __name__ == '__main__':
    base.main(Spring, 'put web \'{"a": {"b": [1, 2]}}\' prod')

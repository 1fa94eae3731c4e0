"""Apollo's config service over HTTP.

Source: apolloconfig/apollo apollo-configservice (NotificationControllerV2, ConfigController, ConfigServiceWithCache, WatchKeysUtil,
DeferredResultWrapper, DefaultIncrementalSyncService, ClientAuthenticationFilter, AccessKeyUtil), apollo-common
GlobalDefaultExceptionHandler, docs client/other-language-client-user-guide; apolloconfig/apollo-java Signature, ConfigSyncType,
ConfigurationChange.

Covered: GET /notifications/v2 with its hold (60 s) and 304, messages of all watched keys at first and of the changed one while held, names
answered as they were asked, `.properties` dropped, letter case forgiven; GET /configs/APP/CLUSTER/NAMESPACE with releaseKey (304), clusters
(the one asked for, the data center's, default), public namespaces under an application's own values, 404, the cache that a newer id in
`messages` renews; incremental answers; access keys with several secrets and the time window.
Not covered: gray releases (ip, label), /configfiles, the meta server, apollo.access-key in observing mode.

One thing is stricter than the server: the Authorization header must name the application (`Apollo APP:SIGNATURE`); the server looks at what
stands behind the colon only.
"""
import base64
import collections
import hashlib
import hmac
import itertools
import json
import re
import time

try:
    from servers import base
except ImportError:  # run by hand: this folder is where Python looks
    import base

Answer = base.Answer


class Release:
    def __init__(self, key, cluster, configurations):
        self.key, self.cluster, self.configurations = key, cluster, configurations


class Apollo(base.Server):
    """A config service without access keys."""

    chunked = True

    def __init__(self, test=None, port=0):
        self.hold_time = 60.0  # seconds until 304
        self.tolerance = 60.0  # seconds a signed request's clock may differ
        self.secrets = {}  # application: its access keys; none: no signature is looked at
        self.incremental = False
        self.cache = False  # reads come from a cache that hears of releases late; see lag()
        self.releases, self.notifications, self.public, self._known, self._cached = {}, {}, {}, {}, {}
        self._last_id, self._told = itertools.count(1), collections.Counter()
        super().__init__(test, port)

    # -- data

    def put(self, namespace, configurations, app='app', cluster='default'):
        """Releases key-value pairs; (releaseKey, notificationId). A text is what a namespace such as `web.yml` or `web.json` holds."""
        if isinstance(configurations, str):
            configurations = {'content': configurations}
        with self.changed:
            number = next(self._last_id)
            key = f'20260101{number:06d}-{hashlib.md5(f"{app}{cluster}{namespace}{number}".encode()).hexdigest()[:16]}'
            at = (app, cluster, namespace)
            self.releases[at] = self._known[key] = Release(key, cluster, dict(configurations))
            self._tell('+'.join(at), number)
            return key, number

    def _tell(self, key, number):
        self.notifications[key] = number
        self._told[key] += 1
        self.poke()

    def delete(self, namespace, app='app', cluster='default'):
        """The release is gone; listeners are told."""
        with self.changed:
            self.releases.pop((app, cluster, namespace), None)
            self._tell('+'.join((app, cluster, namespace)), next(self._last_id))

    def share(self, namespace, app):
        """`namespace` of `app` is public: other applications get it, below what they set themselves."""
        self.public[namespace] = app

    def renumber(self, first=1):
        """The notification ids begin again at `first`, as after the database was made again: clients hold higher ones than there are."""
        with self.changed:
            self._last_id = itertools.count(first)
            for key in self.notifications:
                self.notifications[key] = next(self._last_id)

    def forget_releases(self):
        """Old releases are no longer known: an incremental answer is not possible for who holds one."""
        with self.changed:
            self._known = {r.key: r for r in self.releases.values()}

    def lag(self, on=True):
        """From now on reads come from what is cached now; a request with a newer id in `messages` renews it."""
        with self.changed:
            self.cache = on
            self._cached = {at: (self.notifications.get('+'.join(at), -1), release) for at, release in self.releases.items()} if on else {}

    # -- the protocol

    def answer(self, request):
        parts = request.raw_path.split('/')
        if request.raw_path == '/notifications/v2':
            self._authenticate(request, request.get('appId') or '')
            handler = self._notifications
        elif parts[1] == 'configs' and len(parts) == 5 and all(parts[2:]):
            self._authenticate(request, request.path.split('/')[2])
            handler = self._config
        else:
            raise base.spring_error(request, 404, 'No message available')
        if request.method != 'GET':
            raise self._error(400, f"Request method '{request.method}' not supported", 'org.springframework.web.HttpRequestMethodNotSupportedException')
        return handler(request)

    @staticmethod
    def _error(status, message, exception):
        return Answer(status, {'exception': exception, 'message': message, 'status': status, 'timestamp': time.strftime('%Y-%m-%dT%H:%M:%S')},
                      {'Content-Type': 'application/json;charset=UTF-8'})

    def sign(self, secret, timestamp, target):
        return base64.b64encode(hmac.new(secret.encode(), f'{timestamp}\n{target}'.encode(), hashlib.sha1).digest()).decode()

    def _authenticate(self, request, app):
        if not app.strip():
            raise base.spring_error(request, 400, 'InvalidAppId')
        if not self.secrets.get(app):
            return
        stamp = request.headers.get('Timestamp') or ''
        if not re.fullmatch(r'[0-9]{1,18}', stamp) or abs(time.time() * 1000 - int(stamp)) >= self.tolerance * 1000:
            raise base.spring_error(request, 401, 'RequestTimeTooSkewed')
        for secret in self.secrets[app]:
            if request.headers.get('Authorization') == f'Apollo {app}:{self.sign(secret, stamp, request.target)}':
                return
        raise base.spring_error(request, 401, 'Unauthorized')

    def _name(self, app, namespace):
        """The namespace's true name: without .properties, in the letters it was made with."""
        if namespace.lower().endswith('.properties'):
            namespace = namespace[:-len('.properties')]
        names = [n for a, _, n in self.releases if a == app] + list(self.public)
        return next((n for n in names if n.lower() == namespace.lower()), namespace)

    @staticmethod
    def _clusters(cluster, center):
        """In the order they are looked at."""
        return list(dict.fromkeys([c for c in (cluster, center) if c and c != 'default'] + ['default']))

    def _watched(self, app, cluster, namespace, center):
        """The keys whose messages concern a namespace."""
        apps = [app] + ([self.public[namespace]] if self.public.get(namespace, app) != app else [])
        return ['+'.join((a, c, namespace)) for a in apps for c in self._clusters(cluster, center)]

    def _notifications(self, request):
        app, cluster, center = request.get('appId'), request.get('cluster'), request.get('dataCenter')
        for name, text in (('cluster', cluster), ('notifications', request.get('notifications'))):
            if text is None:  # no handler of its own: the server's answer to it is a 500
                raise self._error(500, f"Required String parameter '{name}' is not present",
                                  'org.springframework.web.bind.MissingServletRequestParameterException')
        asked = {}
        try:
            for entry in json.loads(request.get('notifications')):
                name, known = entry.get('namespaceName'), int(entry.get('notificationId', 0))
                if name:
                    # .properties is dropped from what is answered, the letters are not changed
                    spelled = name[:-len('.properties')] if name.lower().endswith('.properties') else name
                    true = self._name(app, name)
                    if true not in asked or known <= asked[true][1]:
                        asked[true] = spelled, known
        except (ValueError, TypeError, AttributeError):
            asked = {}
        if not asked:
            raise self._error(400, f'Invalid format of notifications: {request.get("notifications")}',
                              'com.ctrip.framework.apollo.common.exception.BadRequestException')
        watched = {name: self._watched(app, cluster, name, center) for name in asked}
        with self.changed:
            news = []
            for name, (spelled, known) in asked.items():
                details = {k: self.notifications[k] for k in watched[name] if k in self.notifications}
                if details and max(details.values()) > known:
                    news.append(self._notification(spelled, max(details.values()), details))
            told = dict(self._told)

        def released():
            """The first message that comes, alone: while it is held, a request is not compared again."""
            for name, (spelled, _) in asked.items():
                for key in watched[name]:
                    if self._told[key] != told.get(key, 0):
                        return [self._notification(spelled, self.notifications[key], {key: self.notifications[key]})]
            return None
        found = news or self.hold(request, self.hold_time, released)
        return Answer(200, found) if found else Answer(304)

    @staticmethod
    def _notification(name, number, details):
        return {'namespaceName': name, 'notificationId': number, 'messages': {'details': details}}

    def _load(self, app, cluster, namespace, center, messages):
        for c in self._clusters(cluster, center):
            at = (app, c, namespace)
            if self.cache:
                number, release = self._cached.get(at, (-1, None))
                if messages.get('+'.join(at), -1) > number:
                    number, release = self._cached[at] = self.notifications.get('+'.join(at), -1), self.releases.get(at)
            else:
                release = self.releases.get(at)
            if release:
                return release
        return None

    def _config(self, request):
        app, cluster, asked = request.path.split('/')[2:5]
        try:
            messages = json.loads(request.get('messages') or '{}').get('details') or {}
            messages = {k: int(v) for k, v in messages.items()}
        except (ValueError, TypeError, AttributeError):
            messages = {}  # as the server: unreadable ones are as none
        with self.changed:
            name = self._name(app, asked)
            found = [self._load(app, cluster, name, request.get('dataCenter'), messages)]
            if self.public.get(name, app) != app:
                found.append(self._load(self.public[name], cluster, name, request.get('dataCenter'), messages))
            found = [r for r in found if r]
            if not found:
                raise base.spring_error(request, 404, f'Could not load configurations with appId: {app}, clusterName: {cluster}, namespace: {asked}')
            key, values = '+'.join(r.key for r in found), {}
            for release in reversed(found):
                values.update(release.configurations)
            given = (request.get('releaseKey') or '-1').split('+')
            if '+'.join(given) == key:
                return Answer(304)
            answer = {'appId': app, 'cluster': found[0].cluster, 'namespaceName': asked, 'configurations': values, 'releaseKey': key}
            if self.incremental:
                answer['configurationChanges'] = answer['configSyncType'] = None
                if all(k in self._known for k in given):
                    old = {}
                    for k in given:
                        old.update(self._known[k].configurations)
                    answer.update(configurations=None, configSyncType='IncrementalSync', configurationChanges=(
                        [{'key': k, 'newValue': values[k], 'configurationChangeType': 'ADDED'} for k in values if k not in old]
                        + [{'key': k, 'newValue': None, 'configurationChangeType': 'DELETED'} for k in old if k not in values]
                        + [{'key': k, 'newValue': values[k], 'configurationChangeType': 'MODIFIED'} for k in values if k in old and old[k] != values[k]]))
        return Answer(200, answer)


if __name__ == '__main__':
    base.main(Apollo, 'put application \'{"a": "1"}\'')

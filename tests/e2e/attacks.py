#!/usr/bin/env python3
"""Attacks a running cluster of this machine: usage: attacks.py TANDEM_HOME JOB.

The caller has started a controller with a job that runs. Each attack must be held: nothing is read or
changed without the token, and the controller and the job live on, with the same process. Prints a
line per attack and ends with 1 if one was not held. Needs nothing but Python's own library; attacks by
another user are made as `nobody` where this user may become that.
"""
import http.client
import json
import os
import pathlib
import socket
import stat
import struct
import sys

HOME = pathlib.Path(sys.argv[1])
JOB = sys.argv[2]
ADDRESS = json.loads((HOME / "controller.json").read_text())
HOST, PORT = ADDRESS["http"].rsplit(":", 1)
TOKEN = (HOME / "token").read_text().strip()
BEARER = {"Authorization": f"Bearer {TOKEN}"}
PATIENCE_S = 60  # ends a hang; measures nothing
NOBODY = 65534

ATTACKS = []
AT_FIRST = {}  # each actor's incarnation


def attack(where):
    def keep(function):
        ATTACKS.append((where, function))
        return function
    return keep


def call(method, target, body=None, headers=None):
    """(status, body) of one request; status 0: the server hung up."""
    connection = http.client.HTTPConnection(HOST, int(PORT), timeout=PATIENCE_S)
    try:
        connection.request(method, target, body, headers or {})
        response = connection.getresponse()
        return response.status, response.read()
    except (http.client.HTTPException, ConnectionError):
        return 0, b""
    finally:
        connection.close()


def raw(*pieces, port=None, shut=False):
    """The HTTP server's answer to these bytes, until it hangs up or is silent."""
    said = b""
    with socket.create_connection((HOST, int(port or PORT)), timeout=PATIENCE_S) as s:
        try:
            for piece in pieces:
                s.sendall(piece)
            if shut:
                s.shutdown(socket.SHUT_WR)
            s.settimeout(2)
            while got := s.recv(65536):
                said += got
                if len(said) > 1 << 20:
                    break
        except OSError:  # it hung up, or says nothing more
            pass
        return said


def status_of(answer):
    words = answer.split(b" ", 2)
    return int(words[1]) if len(words) > 1 and words[0].startswith(b"HTTP/") else 0


def api(target):
    status, body = call("GET", f"/api/v1{target}", headers=BEARER)
    assert status == 200, f"GET {target}: {status} {body[:200]}"
    return json.loads(body)


def expect(wanted, got):
    wanted = wanted if isinstance(wanted, tuple) else (wanted,)
    return None if got in wanted else f"status {got}, wanted {' or '.join(map(str, wanted))}"


def refused(wanted, method, target, body=None, headers=None):
    status, answer = call(method, target, body, headers)
    if TOKEN.encode() in answer:
        return "the token was said"
    return expect(wanted, status)


def scale(body):
    return call("POST", f"/api/v1/jobs/{JOB}/scale", body, {**BEARER})[0]


# ---- who asks

SECRETS = ["/api/v1/jobs", "/api/v1/actors", "/api/v1/nodes", "/api/v1/groups", "/api/v1/events",
           "/api/v1/events?watch=1", "/metrics", "/", f"/api/v1/jobs/{JOB}/samples",
           f"/api/v1/actors/{JOB}/learner/0/logs"]


@attack("http")
def nothing_is_read_without_the_token():
    for target in SECRETS:
        if complaint := refused(401, "GET", target):
            return f"{target}: {complaint}"
    return None


@attack("http")
def nothing_is_read_with_another_token():
    for value in (TOKEN[:-1], TOKEN + "0", "0" * len(TOKEN), "", TOKEN.upper() + " "):
        if complaint := refused(401, "GET", "/api/v1/jobs", headers={"Authorization": f"Bearer {value}"}):
            return complaint
    return None


@attack("http")
def a_token_in_the_query_is_none():
    return refused(401, "GET", f"/api/v1/jobs?token={TOKEN}&access_token={TOKEN}")


@attack("http")
def no_job_is_submitted_without_the_token():
    return refused(401, "POST", "/api/v1/jobs", "reward: {type: command, command: [touch, /tmp/owned]}")


@attack("http")
def no_job_is_cancelled_without_the_token():
    return refused(401, "POST", f"/api/v1/jobs/{JOB}/cancel")


@attack("http")
def no_job_is_scaled_without_the_token():
    return refused(401, "POST", f"/api/v1/jobs/{JOB}/scale", '{"rollout": 3}')


@attack("http")
def no_page_key_is_made_without_the_token():
    return refused(401, "POST", "/api/v1/dashboard")


@attack("http")
def a_name_that_leads_here_is_not_this_server():
    return refused(421, "GET", "/api/v1/jobs", headers={**BEARER, "Host": "evil.example"})


@attack("http")
def health_by_a_foreign_name_is_not_answered():
    return refused(421, "GET", "/healthz", headers={"Host": "evil.example"})


@attack("http")
def a_name_that_only_begins_like_this_machine():
    return refused(421, "GET", "/api/v1/jobs", headers={**BEARER, "Host": "127.0.0.1.evil.example"})


@attack("http")
def two_host_headers():
    return expect((400, 421), status_of(raw(
        b"GET /api/v1/jobs HTTP/1.1\r\nHost: 127.0.0.1\r\nHost: evil.example\r\n"
        + f"Authorization: Bearer {TOKEN}\r\nConnection: close\r\n\r\n".encode())))


@attack("http")
def no_host_header():
    return expect((400, 421), status_of(raw(
        f"GET /api/v1/jobs HTTP/1.0\r\nAuthorization: Bearer {TOKEN}\r\n\r\n".encode())))


@attack("http")
def a_page_of_another_origin_posts():
    return refused(403, "POST", f"/api/v1/jobs/{JOB}/cancel",
                   headers={**BEARER, "Origin": "http://evil.example", "Content-Type": "text/plain"})


@attack("http")
def a_page_of_no_origin_posts():
    return refused(403, "POST", f"/api/v1/jobs/{JOB}/cancel", headers={**BEARER, "Origin": "null"})


@attack("http")
def a_page_of_this_host_but_another_port_posts():
    return refused(403, "POST", f"/api/v1/jobs/{JOB}/cancel",
                   headers={**BEARER, "Origin": f"http://{HOST}:1"})


def open_page(path):
    connection = http.client.HTTPConnection(HOST, int(PORT), timeout=PATIENCE_S)
    connection.request("GET", path)
    response = connection.getresponse()
    response.read()
    connection.close()
    return response.status, (response.getheader("Set-Cookie") or "").split(";")[0]


def cookie():
    _, body = call("POST", "/api/v1/dashboard", headers=BEARER)
    return open_page(json.loads(body)["path"])[1]


@attack("http")
def a_page_key_opens_once():
    _, body = call("POST", "/api/v1/dashboard", headers=BEARER)
    path = json.loads(body)["path"]
    return expect(303, open_page(path)[0]) or expect(401, open_page(path)[0])


@attack("http")
def a_page_key_is_guessed():
    return expect(401, open_page("/?key=" + "0" * 64)[0]) or expect(401, open_page("/?key=")[0])


@attack("http")
def a_cookie_without_an_origin_changes_nothing():
    return refused(403, "POST", f"/api/v1/jobs/{JOB}/cancel", headers={"Cookie": cookie()})


@attack("http")
def a_cookie_with_a_foreign_origin_changes_nothing():
    return refused(403, "POST", f"/api/v1/jobs/{JOB}/cancel",
                   headers={"Cookie": cookie(), "Origin": "http://evil.example"})


@attack("http")
def a_cookie_is_guessed():
    name = cookie().split("=")[0]
    return refused(401, "GET", "/api/v1/jobs", headers={"Cookie": f"{name}={'0' * 64}"})


# ---- requests with the token

@attack("http")
def brackets_nested_400000_deep():
    return expect(400, scale("[" * 400_000))


@attack("http")
def objects_nested_50000_deep():
    return expect(400, scale('{"rollout":' * 50_000 + "1" + "}" * 50_000))


@attack("http")
def a_job_file_nested_100000_deep():
    return expect(400, call("POST", "/api/v1/jobs", "a: " + "[" * 100_000, BEARER)[0])


@attack("http")
def a_job_file_of_aliases_that_grow():
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]" for i in range(1, 12)]
    return expect(400, call("POST", "/api/v1/jobs", "\n".join(lines), BEARER)[0])


@attack("http")
def scale_beyond_every_bound():
    for count in ("100000", "2000000000", "99999999999", "-1", "18446744073709551617", "1e308",
                  "1.5", '"2"', "null", "[1]", "true"):
        if complaint := expect(400, scale('{"rollout": %s}' % count)):
            return f"{count}: {complaint}"
    return None


@attack("http")
def scale_a_role_that_is_none():
    return expect(400, scale('{"controller": 1}')) or expect(400, scale("{}"))


@attack("http")
def a_body_that_is_not_utf8():
    return expect(400, scale(b'{"roll\xff\xfeout": 1}'))


@attack("http")
def a_body_over_the_limit():
    return expect((0, 413), scale(b" " * (2 << 20)))


@attack("http")
def a_header_over_the_limit():
    return expect((0, 431), status_of(raw(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX: " + b"x" * (1 << 20))))


@attack("http")
def a_length_that_is_none():
    for length in (b"-1", b"99999999999999999999", b"0x10", b"1, 2"):
        said = raw(b"POST /api/v1/jobs HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: " + length
                   + b"\r\n\r\n")
        if complaint := expect((0, 400, 413), status_of(said)):
            return f"{length}: {complaint}"
    return None


@attack("http")
def a_request_hidden_in_another():
    hidden = f"POST /api/v1/jobs/{JOB}/cancel HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode()
    said = raw(b"POST /api/v1/jobs HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 4\r\n"
               b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + hidden)
    return "something was accepted" if b" 200 " in said else None


@attack("http")
def a_chunk_of_16_exabytes():
    return expect((0, 400, 413), status_of(raw(
        b"POST /api/v1/jobs HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\n"
        b"ffffffffffffffff\r\n")))


@attack("http")
def bytes_that_are_not_http():
    for said in (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
                 b"\x00" * 4096, b"GET\r\n\r\n", b"\r\n" * 10_000, os.urandom(4096)):
        if b" 200 " in raw(said, shut=True):
            return f"{said[:12]}: answered"
    return None


@attack("http")
def a_path_that_leaves_the_folder():
    for target in ("/api/v1/actors/..%2f..%2f..%2ftoken/logs", "/api/v1/runs/..%2f..",
                   "/api/v1/runs/..%2f..%2ftoken", f"/api/v1/runs/{JOB}/logs/..%2f..%2f..%2f..%2ftoken",
                   f"/api/v1/runs/{JOB}%00/metrics", "/api/v1/jobs/..%2f../samples",
                   "/assets/..%2f..%2ftoken", "//etc/passwd", "/../token", "/%2e%2e/token"):
        status, body = call("GET", target, headers=BEARER)
        if TOKEN.encode() in body or b"root:" in body or status == 200:
            return f"{target}: {status}"
    return None


@attack("http")
def a_target_with_bytes_of_no_text():
    for target in (b"/api/v1/jobs/%ff%fe", b"/api/v1/jobs/%", b"/api/v1/jobs/%zz",
                   b"/api/v1/jobs/a%0d%0aSet-Cookie:%20x=1", b"/api/v1/events?job=%ff"):
        said = raw(b"GET " + target + b" HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n"
                   + f"Authorization: Bearer {TOKEN}\r\n\r\n".encode())
        if b"\nSet-Cookie: x" in said or not status_of(said):
            return f"{target}: {said[:80]}"
    return None


@attack("http")
def methods_that_are_not_served():
    for method in ("PUT", "PATCH", "TRACE", "OPTIONS", "CONNECT", "X" * 1000):
        status, _ = call(method, "/api/v1/jobs", headers=BEARER)
        if 200 <= status < 300:
            return f"{method[:9]}: {status}"
    return None


@attack("http")
def requests_that_never_end():
    waiting = [socket.create_connection((HOST, int(PORT))) for _ in range(100)]
    for s in waiting:
        s.sendall(b"POST /api/v1/jobs HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 9\r\n\r\n1")
    answered = len(api("/jobs"))
    for s in waiting:
        s.close()
    return None if answered else "no job is listed"


@attack("http")
def streams_that_nobody_reads():
    streams = []
    for _ in range(20):
        s = socket.socket()
        s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        s.connect((HOST, int(PORT)))
        s.sendall(f"GET /api/v1/events?watch=1 HTTP/1.1\r\nHost: 127.0.0.1\r\n"
                  f"Authorization: Bearer {TOKEN}\r\n\r\n".encode())
        streams.append(s)
    api("/jobs")
    for s in streams:
        s.close()
    return None


@attack("http")
def a_response_carries_its_guards():
    connection = http.client.HTTPConnection(HOST, int(PORT), timeout=PATIENCE_S)
    connection.request("GET", "/api/v1/jobs", headers=BEARER)
    headers = {k.lower(): v for k, v in connection.getresponse().getheaders()}
    connection.close()
    if "script-src 'self'" not in headers.get("content-security-policy", ""):
        return "no content-security-policy"
    if "access-control-allow-origin" in headers:
        return "other origins may read"
    return None if headers.get("x-content-type-options") == "nosniff" else "types are guessed"


# ---- links and payloads: ZMTP 3.0 by hand

def greeting(mechanism=b"NULL", server=False):
    return (b"\xff" + b"\0" * 8 + b"\x7f" + b"\x03\x00" + mechanism.ljust(20, b"\0")
            + (b"\x01" if server else b"\0") + b"\0" * 31)


def command(name, body):
    content = bytes([len(name)]) + name + body
    return b"\x04" + bytes([len(content)]) + content if len(content) < 256 else (
        b"\x06" + struct.pack(">Q", len(content)) + content)


def property_of(name, value):
    return bytes([len(name)]) + name + struct.pack(">I", len(value)) + value


def ready(identity):
    return command(b"READY", property_of(b"Socket-Type", b"DEALER") + property_of(b"Identity", identity))


def message(body):
    return b"\x02" + struct.pack(">Q", len(body)) + body


def endpoints():
    """(name, connect) of each link and payload socket of the cluster."""
    folder = pathlib.Path(ADDRESS["control_socket"].removeprefix("ipc://")).parent
    for path in sorted(folder.iterdir()):
        if stat.S_ISSOCK(path.stat().st_mode):
            yield path.name, lambda p=path: unix(p)
    host, port = ADDRESS["control"].rsplit(":", 1)
    yield "tcp", lambda: socket.create_connection((host, int(port)), timeout=PATIENCE_S)


def unix(path):
    s = socket.socket(socket.AF_UNIX)
    s.settimeout(PATIENCE_S)
    s.connect(str(path))
    return s


def say(connect, *pieces):
    """The bytes that come back until the peer hangs up or is silent."""
    with connect() as s:
        said = b""
        try:
            for piece in pieces:
                s.sendall(piece)
            s.settimeout(0.5)
            while got := s.recv(65536):
                said += got
        except (ConnectionError, TimeoutError):
            pass
        return said


def at_all_links(*pieces):
    for _, connect in endpoints():
        say(connect, *pieces)


@attack("links")
def noise_at_every_socket():
    at_all_links(os.urandom(8192))
    at_all_links(b"\0" * 8192)


@attack("links")
def a_greeting_that_stops_in_the_middle():
    at_all_links(greeting()[:40])


@attack("links")
def a_version_and_a_mechanism_of_nobody():
    at_all_links(b"\xff" + b"\0" * 8 + b"\x7f\x09\x09" + b"MAGIC".ljust(20, b"\0") + b"\0" * 32)


@attack("links")
def tcp_without_keys_is_told_nothing():
    for name, connect in endpoints():
        if name != "tcp":
            continue
        for mechanism in (b"NULL", b"PLAIN"):
            said = say(connect, greeting(mechanism), ready(b"node/evil#1"), message(b"\x00hello"))
            if len(said) > 64 and b"READY" in said:
                return f"{mechanism}: the handshake went through"
    return None


@attack("links")
def tcp_with_an_unknown_key_is_told_nothing():
    for name, connect in endpoints():
        if name == "tcp":
            hello = command(b"HELLO", b"\x01\x00" + b"\0" * 72 + os.urandom(32) + b"\0" * 7 + b"\x01"
                            + os.urandom(80))
            if b"READY" in say(connect, greeting(b"CURVE"), hello):
                return "the handshake went through"
    return None


@attack("links")
def an_introduction_of_noise():
    for kind in range(8):
        at_all_links(greeting(), ready(b"node/evil#1"), message(bytes([kind]) + os.urandom(200)))


@attack("links")
def an_identity_of_noise():
    at_all_links(greeting(), ready(os.urandom(250)), message(b"\x01" + os.urandom(64)))


@attack("links")
def the_identity_of_a_living_rank():
    name = f"{JOB}/learner/0#1".encode()
    at_all_links(greeting(), ready(name), message(b"\x01" + os.urandom(64)))


@attack("links")
def a_message_of_8_exabytes():
    at_all_links(greeting(), ready(b"x#1"), b"\x02" + struct.pack(">Q", 1 << 62) + b"x")


@attack("links")
def an_empty_message_and_one_of_many_parts():
    at_all_links(greeting(), ready(b"x#1"), b"\x00\x00", b"\x01\x01x" * 1000 + b"\x00\x01x")


@attack("links")
def commands_that_do_not_belong_here():
    at_all_links(greeting(), ready(b"x#1"), command(b"SUBSCRIBE", b"x"), command(b"PING", b"\0\0" * 100),
                 command(b"ERROR", b"\xff"), command(b"READY", b"\xff" * 200))


@attack("links")
def two_hundred_half_open_connections():
    for _, connect in list(endpoints()):
        open_ones = []
        try:
            for _ in range(200):
                open_ones.append(connect())
        except BlockingIOError:  # more than may wait for the server
            pass
        for s in open_ones:
            s.close()


@attack("payloads")
def requests_of_noise():
    for _ in range(20):
        at_all_links(greeting(), ready(b""), message(os.urandom(100)))


@attack("payloads")
def a_put_of_counts_that_do_not_fit():
    # msgpack: deep nesting, an array of 2^32 items, a string of 4 GiB
    for body in (b"\x91" * 100_000, b"\xdd\xff\xff\xff\xff", b"\xdb\xff\xff\xff\xffx",
                 b"\x92\x00" + b"\xdd\xff\xff\xff\xff"):
        at_all_links(greeting(), ready(b""), message(body))


# ---- files and processes

@attack("files")
def everything_below_the_state_folder_is_private():
    for path in [HOME, *HOME.rglob("*")]:
        try:
            mode = path.lstat().st_mode
        except FileNotFoundError:
            continue  # a file of the running job
        if not stat.S_ISLNK(mode) and mode & 0o077:
            return f"{path.relative_to(HOME)} has mode {stat.S_IMODE(mode):o}"
    return None


@attack("files")
def the_folder_of_the_sockets_is_private():
    folder = pathlib.Path(ADDRESS["control_socket"].removeprefix("ipc://")).parent
    mode = stat.S_IMODE(folder.stat().st_mode)
    return None if mode == 0o700 else f"it has mode {mode:o}"


def as_nobody(function):
    """The exception or result of `function` as another user; None where this user cannot become one."""
    if os.geteuid() != 0:
        return PermissionError()
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.setgroups([])
            os.setgid(NOBODY)
            os.setuid(NOBODY)
            function()
            os.write(writer, b"done")
        except PermissionError:
            os.write(writer, b"denied")
        except BaseException as error:  # pylint: disable=broad-except
            os.write(writer, repr(error).encode()[:400])
        os._exit(0)
    os.close(writer)
    said = os.read(reader, 4096)
    os.close(reader)
    os.waitpid(child, 0)
    return PermissionError() if said == b"denied" else said


@attack("files")
def another_user_reads_no_file():
    for path in ("token", "controller.secret", "keys/node.secret", "controller.sqlite",
                 f"runs/{JOB}/job.yaml"):
        got = as_nobody(lambda p=HOME / path: open(p, "rb").read())
        if not isinstance(got, PermissionError):
            return f"{path}: {got}"
    return None


@attack("files")
def another_user_reaches_no_unix_socket():
    got = as_nobody(lambda: unix(ADDRESS["control_socket"].removeprefix("ipc://")))
    return None if isinstance(got, PermissionError) else str(got)


@attack("files")
def no_secret_is_in_an_argument_or_an_environment():
    secrets = [TOKEN.encode(), (HOME / "controller.secret").read_bytes().strip(),
               (HOME / "keys/node.secret").read_bytes().strip()]
    for process in pathlib.Path("/proc").iterdir():
        if not process.name.isdigit() or int(process.name) == os.getpid():
            continue
        try:
            said = (process / "cmdline").read_bytes() + (process / "environ").read_bytes()
        except OSError:
            continue
        if any(secret in said for secret in secrets):
            return f"process {process.name} shows one"
    return None


@attack("files")
def no_shared_memory_is_open_to_others():
    for path in pathlib.Path("/dev/shm").glob("tandem*"):
        if path.stat().st_uid == os.geteuid() and path.stat().st_mode & 0o077:
            return f"{path.name} has mode {stat.S_IMODE(path.stat().st_mode):o}"
    return None


def lives():
    """Nothing if the controller and the job are as before the attacks."""
    job = api(f"/jobs/{JOB}")
    if job["state"] not in ("Running", "WarmStart"):
        return f"the job is {job['state']}: {job.get('message')}"
    if len(api("/jobs")) != 1:
        return "there is another job"
    if incarnations() != AT_FIRST:
        return f"an actor was restarted: {incarnations()} instead of {AT_FIRST}"
    now = json.loads((HOME / "controller.json").read_text())
    return None if now == ADDRESS else "another controller runs"


def incarnations():
    return {actor["name"]: actor["incarnation"] for actor in api("/actors")}


def main():
    failed = 0
    AT_FIRST.update(incarnations())
    for where, function in ATTACKS:
        try:
            complaint = function() or lives()
        except Exception as error:  # pylint: disable=broad-except
            complaint = f"{type(error).__name__}: {error}"
        failed += complaint is not None
        name = function.__name__.replace("_", " ")
        print(f"{'held' if complaint is None else 'BROKEN':7}{where:9} {name}"
              + (f": {complaint}" if complaint else ""), flush=True)
    print(f"{len(ATTACKS) - failed} of {len(ATTACKS)} attacks held")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

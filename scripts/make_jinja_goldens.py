#!/usr/bin/env python3
"""Writes tests/golden/jinja/cases.json: snippets of Jinja, and random conversations by the templates
beside that file, as transformers renders them.

usage: scripts/make_jinja_goldens.py    (needs transformers and jinja2)
"""
import importlib.machinery
import importlib.util
import json
import pathlib

ROOT = pathlib.Path(__file__).resolve().parent.parent
OUT = ROOT / "tests/golden/jinja"
CONVERSATIONS = 45  # for each template

VARIABLES = {
    "text": "  Hello, W\u00f6rld \u4f60\u597d! ", "empty": "", "n": 7, "zero": 0, "pi": 3.25, "yes": True,
    "no": False, "nothing": None, "list": [3, 1, 2], "words": ["b", "A", "c", "a"],
    "dict": {"z": 1, "a": {"b": [1, 2.5, None, True]}, "items": "mine", "q\"": "it's"},
    "users": [{"name": "Bo", "age": 30, "tags": ["x"]}, {"name": "al", "age": 25}, {"name": "Cy", "age": 30}],
}
SNIPPETS = r"""
{{ 7 / 2 }} {{ 7 // 2 }} {{ -7 // 2 }} {{ 7 % 3 }} {{ -7 % 3 }} {{ 2 ** 10 }} {{ 2 ** -1 }} {{ 7.5 // 2 }} {{ -7.5 % 2 }}
{{ 1 + true }} {{ true + true }} {{ 1.0 }} {{ 1e3 }} {{ 1e16 }} {{ 1e-5 }} {{ 0.1 + 0.2 }} {{ 1_000 }} {{ 0x1f }} {{ 0b11 }}
{{ -pi }} {{ +n }} {{ - - 2 }} {{ -2 ** 2 }} {{ 2 ** 3 ** 2 }} {{ -n|abs }} {{ (-n)|abs }}
{{ 1 / 0 }}
{{ 1 // 0 }}
{{ 5 % 0 }}
{{ 'a' + 1 }}
{{ 'a' ~ 1 ~ none ~ true ~ 1.5 ~ undefined_thing ~ [1, 'x'] }}
{{ 'ab' * 3 }}|{{ [1, 2] * 2 }}|{{ 'x' * -1 }}|{{ 2 * 'y' }}
{{ [1] + [2] }} {{ (1,) + (2,) }}
{{ [1] + (2,) }}
{{ n is defined }} {{ foo is defined }} {{ foo }}|
{{ foo.bar }}
{{ foo['bar'] }}
{{ foo + 1 }}
{{ foo() }}
{{ dict.foo }}|{{ dict.foo is undefined }}|{{ dict['foo'] }}|{{ dict.a.b[1] }}|{{ dict.a.b[9] is defined }}
{{ dict.foo.bar }}
{{ nothing.x }}|{{ nothing.x is defined }}
{{ nothing.x.y }}
{{ dict['items'] }} {{ dict.items() | list }} {{ dict|items|list }}
{{ dict.get('z') }} {{ dict.get('nope') }} {{ dict.get('nope', 5) }} {{ dict.keys() | list }} {{ dict.values() | list }}
{{ dict.keys() }} {{ dict.values() }} {{ dict.items() }}
{{ dict }} {{ list }} {{ words }} {{ users[0] }} {{ (1, 'a') }} {{ (1,) }} {{ () }}
{{ "it's" ~ ["it's", 'say "x"', "both ' and \"", 'tab\t nl\n \\ \x07 \u00e9 \u200b'] }}
{{ none }} {{ None }} {{ True }} {{ false }} {{ nothing }} {{ yes }}
{{ 1 == 1.0 }} {{ true == 1 }} {{ 'a' == 'a' }} {{ [1, 2] == [1, 2] }} {{ (1,) == [1] }} {{ none == false }} {{ {'a': 1, 'b': 2} == {'b': 2, 'a': 1} }}
{{ 1 < 2 < 3 }} {{ 1 < 3 < 2 }} {{ 'a' < 'b' }} {{ [1, 2] < [1, 3] }} {{ 2 > 1 >= 1 }} {{ 1 != 2 }}
{{ 1 < 'a' }}
{{ none < 1 }}
{{ 1 in [1, 2] }} {{ 'ell' in text }} {{ 'z' in dict }} {{ 3 not in list }} {{ 'a' in ('a', 'b') }} {{ 'x' in foo }} {{ 1 in 'a' if false else 'no' }}
{{ 1 in 'abc' }}
{{ 1 in 5 }}
{{ [] in dict }}
{{ not yes }} {{ not foo }} {{ yes and 'x' }} {{ no or 'y' }} {{ '' or none }} {{ no and 1/0 }} {{ not no and yes }}
{{ 'a' if yes }}|{{ 'a' if no }}|{{ 'a' if no else 'b' if no else 'c' }}
{{ ('a' if no).x }}
{{ text[0] }}|{{ text[-1] }}|{{ text[3:8] }}|{{ text[::-1] }}|{{ text[-4:-1] }}|{{ text[:2] }}|{{ text[100] is defined }}|{{ text[10:3] }}|{{ text[::2] }}
{{ list[0] }} {{ list[-1] }} {{ list[1:] }} {{ list[::-1] }} {{ list[:-1] }} {{ list[5:] }} {{ list['0'] is defined }} {{ (1,2,3)[1:] }} {{ list[true] }}
{{ list[::0] }}
{{ list[1.0] is defined }} {{ n[0] is defined }} {{ list[none:2] }}
{{ list['a':] }}
{{ dict[1:] }}
{{ nothing[1:] }}
{{ foo[1:] }}
{{ n[:1] is defined }}
{{ (list | map('string'))[:1] }}
{{ text.strip() }}|{{ text.lstrip() }}|{{ text.rstrip(' !') }}|{{ 'xxhixx'.strip('x') }}|{{ '\u00a0x\u3000'.strip() }}|{{ '--a-'.lstrip('-') }}
{{ 'a,b,,c'.split(',') }} {{ ' a  b '.split() }} {{ 'a,b,c'.split(',', 1) }} {{ 'a b c'.split(none, 1) }} {{ 'a b c'.rsplit(' ', 1) }} {{ ''.split() }} {{ ''.split(',') }} {{ 'a  b c'.rsplit(maxsplit=1) }}
{{ 'a'.split('') }}
{{ text.upper() }} {{ text.lower() }} {{ 'hello world'.title() }} {{ "they're x1y".title() }} {{ 'hELLO'.capitalize() }} {{ 'stra\u00dfe \ufb01'.upper() }} {{ '\u0391\u03a3'.lower() }} {{ '\u0130'.lower() }} {{ 'Ab'.swapcase() }}
{{ 'abc'.startswith('a') }} {{ 'abc'.endswith(('x', 'bc')) }} {{ 'abc'.startswith('b', 1) }} {{ ''.startswith('') }}
{{ 'abc'.startswith(1) }}
{{ 'aXbX'.replace('X', '-') }} {{ 'aXbX'.replace('X', '-', 1) }} {{ 'ab'.replace('', '.') }} {{ 'a'.find('b') }} {{ '\u4f60\u597d'.find('\u597d') }} {{ 'abcabc'.rfind('b') }} {{ 'aaa'.count('a') }} {{ ''.count('') }} {{ 'abc'.index('c') }}
{{ 'abc'.index('x') }}
{{ ','.join(['a', 'b']) }} {{ ''.join([]) }} {{ 'ab'.join('xyz') }}
{{ ','.join([1]) }}
{{ 'ab1'.isalnum() }} {{ 'ab'.isalpha() }} {{ '12'.isdigit() }} {{ ' '.isspace() }} {{ ''.isdigit() }} {{ 'Ab'.islower() }} {{ 'AB'.isupper() }} {{ '\u00e9'.isalpha() }} {{ '\u00b2'.isdigit() }} {{ 'a'.isascii() }}
{{ 'a.b.c'.partition('.') }} {{ 'a.b.c'.rpartition('.') }} {{ 'x'.partition('.') }} {{ 'preX'.removeprefix('pre') }} {{ 'Xsuf'.removesuffix('suf') }} {{ 'a\nb\r\nc'.splitlines() }} {{ 'a\nb'.splitlines(true) }}
{{ 'ab'.ljust(4) }}|{{ 'ab'.rjust(4, '.') }}|{{ 'ab'.center(5) }}|{{ 'ab'.center(7, '*') }}|{{ 'abc'.center(6) }}|{{ '-7'.zfill(4) }}
{{ '%s is %d and %5.2f %x %r %%' % ('a', 7, 3.14159, 255, 'q') }} {{ '%s' % 5 }} {{ '%(a)s' % {'a': 1} }} {{ '%05d|%-5d|%+d' % (42, 42, 42) }} {{ '%s' % none }} {{ '%10s|%-10s|' % ('r', 'l') }} {{ '%e %g' % (12345.678, 0.0001) }}
{{ '%d' % 'a' }}
{{ '%s %s' % ('a',) }}
{{ '%s' % ('a', 'b') }}
{{ '{} {} {0}' }} {{ '{} {}'.format(1, 'a') }} {{ '{1}{0}{x}'.format('a', 'b', x=3) }} {{ '{:>5}|{:<5}|{:^5}|{:05d}|{:.2f}|{:,}|{:x}|{:+}|{:%}'.format('a', 'b', 'c', 42, 3.14159, 1234567, 255, 7, 0.5) }} {{ '{0[a]} {1.z}'.format({'a': 1}, dict) }} {{ '{{}}'.format() }} {{ '{!r}'.format('a') }} {{ '{:>{w}}'.format('a', w=4) }}
{{ '{}'.format() }}
{{ '{'.format() }}
{{ list.append(4) }}
{{ dict.update({}) }}
{{ list.index(1) }} {{ list.count(1) }} {{ list.copy() }} {{ dict.copy() == dict }}
{{ list.index(99) }}
{{ text.nope }}|{{ text.__class__ }}|{{ dict.__len__ is defined }}|{{ list.append is defined }}
{{ text.__class__.x }}
{{ list | length }} {{ text | length }} {{ dict | length }} {{ foo | length }} {{ '' | count }} {{ range(5) | length }}
{{ 5 | length }}
{{ (list | map('string')) | length }}
{{ list | sort }} {{ words | sort }} {{ words | sort(case_sensitive=true) }} {{ list | sort(reverse=true) }} {{ users | sort(attribute='age') | map(attribute='name') | list }} {{ users | sort(attribute='age,name') | map(attribute='name') | join }}
{{ [1, 'a'] | sort }}
{{ words | unique | list }} {{ [1, 1.0, true, 2] | unique | list }} {{ words | unique(true) | join(',') }}
{{ list | first }} {{ list | last }} {{ [] | first }} {{ 'abc' | first }} {{ 'abc' | last }} {{ [] | last is defined }} {{ dict | first }} {{ dict | last }}
{{ list | min }} {{ list | max }} {{ [] | max is defined }} {{ words | max }} {{ users | max(attribute='age') }} {{ list | sum }} {{ users | sum('age') }} {{ [[1], [2]] | sum(start=[]) }}
{{ list | join }} {{ list | join(', ') }} {{ users | join('|', attribute='name') }} {{ [none, true, foo] | join('-') }} {{ 'abc' | join('.') }} {{ dict | join(',') }}
{{ 5 | join }}
{{ list | reverse | list }} {{ 'abc' | reverse }} {{ dict | reverse | list }} {{ (1,2) | reverse | join }}
{{ users | map(attribute='tags') | list }} {{ users | map(attribute='tags', default='-') | list }} {{ words | map('upper') | list }} {{ list | map('string') | join('+') }} {{ users | map(attribute='tags.0', default='no') | join(',') }}
{{ list | map('nope') | list }}
{{ list | select('odd') | list }} {{ list | select('gt', 1) | list }} {{ list | reject('even') | list }} {{ [0, '', 'x'] | select | list }} {{ users | selectattr('age', 'equalto', 30) | map(attribute='name') | list }} {{ users | rejectattr('tags') | list | length }} {{ users | selectattr('tags', 'defined') | list | length }} {{ foo | selectattr('x') | list }}
{{ users | selectattr('age', 'nope') | list }}
{{ (users | selectattr('age')) and 'always' }} {{ ([] | select) and 'always' }} {{ (list | map('string'))[0] is defined }} {{ list | map('string') is iterable }} {{ list | map('string') is sequence }}
{{ dict | dictsort }} {{ {'b': 1, 'A': 2} | dictsort }} {{ {'b': 1, 'A': 2} | dictsort(true) }} {{ {'b': 1, 'A': 2} | dictsort(by='value', reverse=true) }}
{{ list | dictsort }}
{{ list | items | list }}
{{ foo | items | list }} {{ foo | default('d') }} {{ '' | default('d') }} {{ '' | default('d', true) }} {{ none | default('d') }} {{ none | d('e', boolean=true) }} {{ foo.bar | default('x') if foo else 'guarded' }}
{{ ' x ' | trim }}|{{ 'xax' | trim('x') }}|{{ 5 | trim }}|{{ none | trim }}|{{ foo | trim }}|{{ text | upper }}|{{ text | lower }}|{{ 'hello (world) a-b' | title }}|{{ 'hELLO' | capitalize }}|{{ 5 | upper }}
{{ 'aXb' | replace('X', 1) }} {{ 5 | replace('5', 'five') }} {{ 'aaa' | replace('a', 'b', 2) }}
{{ '42' | int }} {{ '42.9' | int }} {{ 'x' | int }} {{ 'x' | int(7) }} {{ 3.9 | int }} {{ '0x1A' | int(0, 16) }} {{ '0x1A' | int(base=0) }} {{ none | int }} {{ true | int }} {{ ' 5 ' | int }} {{ '1_000' | int }} {{ [] | int }}
{{ foo | int }}
{{ '1.5' | float }} {{ 'x' | float }} {{ 'x' | float(2.5) }} {{ 3 | float }} {{ 'inf' | float }} {{ '1e3' | float }} {{ 'nan' | float }}
{{ 3.5 | round }} {{ 4.5 | round }} {{ 2.675 | round(2) }} {{ 3.14159 | round(2) }} {{ 42 | round }} {{ 2.5 | round(0, 'ceil') }} {{ 2.55 | round(1, 'floor') }} {{ -2.5 | round }} {{ 1234.5 | round(-2) }}
{{ 5 | round(0, 'nope') }}
{{ -5 | abs }} {{ (-5) | abs }} {{ -5.5 | abs }} {{ 'a' | string }} {{ 5 | string ~ 'x' }} {{ none | string }} {{ [1] | string }}
{{ 'a\nb\n\nc' | indent }}|{{ 'a\nb' | indent(2, true) }}|{{ 'a\n\nb' | indent(2, blank=true) }}|{{ 'a\nb' | indent('> ') }}|{{ '' | indent }}|{{ 'a\n' | indent(1) }}
{{ 5 | indent }}
{{ '%s-%s' | format(1, 'b') }} {{ '%(x)d' | format(x=3) }} {{ 'hello world foo bar' | truncate(11) }} {{ 'hello world' | truncate(5, true) }} {{ 'hello world foo' | truncate(9, false, '', 0) }} {{ 'one two, three' | wordcount }} {{ 'ab' | center(6) }}|
{{ '<a href="x">&\'</a>' | escape }} {{ '<b>' | safe }} {{ '<b>' | e | e }} {{ '<b>' | forceescape }} {{ ('<i>' | safe) + '<b>' }} {{ '<b>' + ('<i>' | safe) }} {{ ('<i>' | safe) ~ '<b>' }} {{ ('a<i>' | safe | upper) + '<' }} {{ ('x' | safe) is escaped }} {{ ('<i>' | safe)[1:] + '&' }} {{ ('a,b' | safe).split(',')[0] + '<' }} {{ ('aXb' | safe).replace('X', '<') }} {{ ('<' | safe) * 2 + '>' }} {{ ('<' | safe).join(['>', 'a' | safe]) }}
{{ dict | tojson }} {{ text | tojson }} {{ 'é\u2028\x07\x7f"\\/' | tojson }} {{ [] | tojson }} {{ {} | tojson }} {{ 1.0 | tojson }} {{ 1e22 | tojson }} {{ (1, 2) | tojson }} {{ none | tojson }} {{ {1: 2, true: 3, none: 4, 1.5: 5} | tojson }} {{ '<&>' | tojson }}
{{ dict | tojson(indent=2) }}
{{ dict | tojson(indent=none, separators=(',', ':')) }} {{ {'b': 1, 'a': [1, {}]} | tojson(indent=4, sort_keys=true) }} {{ 'é😀\x7f' | tojson(ensure_ascii=true) }} {{ [1, [2]] | tojson(indent='-') }} {{ {'a': 1} | tojson(true, 1) }} {{ [1, 2] | tojson(indent=0) }}
{{ foo | tojson }}
{{ dict.keys() | tojson }}
{{ range(3) | tojson }}
{{ {(1,): 2} | tojson }}
{{ range(3) | list }} {{ range(1, 8, 3) | list }} {{ range(5, 0, -2) | list }} {{ range(3) }} {{ range(3)[1] }} {{ range(0) | list }} {{ 2 in range(3) }} {{ range(3) | last }}
{{ range(1000000) }}
{{ range(1, 2, 0) }}
{{ range('a') }}
{{ {'a': 1}['a'] }} {{ {'a': 1, 'a': 2} }} {{ {1: 'x'}[1] }} {{ {1: 'x'}[true] }} {{ {}.x is defined }} {{ {'x': {'y': 2}}.x.y }} {{ dict(a=1, b=2) if false else '' }}
{{ {[]: 1} }}
{{ list | batch(2) | list }} {{ list | batch(2, '-') | list }} {{ [1, 2, 3, 4, 5] | slice(2) | list }} {{ [1, 2, 3] | slice(2, 'f') | list }} {{ users | groupby('age') | map('first') | list }} {% for age, group in users | groupby('age') %}{{ age }}:{{ group | map(attribute='name') | join(',') }};{% endfor %}
{{ ('name' | attr('upper'))() }}
{{ dict | attr('z') is defined }} {{ words | attr('nope') is defined }}
{{ n is number }} {{ pi is float }} {{ n is integer }} {{ yes is integer }} {{ yes is boolean }} {{ yes is number }} {{ text is string }} {{ list is sequence }} {{ dict is mapping }} {{ dict is sequence }} {{ text is sequence }} {{ list is iterable }} {{ n is iterable }} {{ none is none }} {{ yes is true }} {{ 1 is true }} {{ no is false }} {{ foo is none }} {{ foo is sequence }} {{ foo is iterable }} {{ dict.keys() is sequence }} {{ range is callable }} {{ foo is callable }} {{ text is callable }}
{{ 3 is odd }} {{ 4 is even }} {{ 9 is divisibleby 3 }} {{ 9 is divisibleby(2) }} {{ 'a' is lower }} {{ 'A' is upper }} {{ 3 is in [3] }} {{ 3 is eq 3 }} {{ 3 is ne 3 }} {{ 3 is gt 2 }} {{ 3 is le 2 }} {{ 3 is sameas 3 }} {{ none is sameas none }} {{ 'upper' is filter }} {{ 'nope' is filter }} {{ 'odd' is test }} {{ 3 is not odd }} {{ 3 is equalto 3 and true }} {{ not 3 is odd }}
{{ 3 is nope }}
{{ 3 | nope }}
{{ 'a' is odd }}
{% if list %}A{% elif foo %}B{% else %}C{% endif %}{% if '' %}x{% elif 0.0 %}y{% elif [] %}z{% elif {} %}w{% elif none %}v{% else %}none of them{% endif %}
{% for x in list %}{{ loop.index }}{{ loop.index0 }}{{ loop.first }}{{ loop.last }}{{ loop.length }}{{ loop.revindex }}{{ loop.revindex0 }}{{ loop.depth }}{{ loop.depth0 }}:{{ x }};{% endfor %}
{% for x in list %}{{ loop.previtem | default('-') }}<{{ x }}<{{ loop.nextitem | default('-') }} {% endfor %}
{% for x in list if x > 1 %}{{ x }}{{ loop.length }}{{ loop.last }} {% endfor %}
{% for x in [] %}x{% else %}empty{% endfor %}{% for x in list if x > 9 %}x{% else %}filtered{% endfor %}{% for x in foo %}{% else %}undefined{% endfor %}
{% for x in none %}{% endfor %}
{% for x in 5 %}{% endfor %}
{% for k, v in dict.items() %}{{ k }}={{ v }};{% endfor %}{% for k in dict %}{{ k }},{% endfor %}{% for c in 'h\u00e9' %}[{{ c }}]{% endfor %}{% for a, (b, c) in [(1, (2, 3))] %}{{ a }}{{ b }}{{ c }}{% endfor %}
{% for a, b in [1] %}{% endfor %}
{% for a, b in [(1, 2, 3)] %}{% endfor %}
{% for x in list %}{{ loop.cycle('a', 'b') }}{{ loop.changed(x > 1) }}{% endfor %}
{% for x in list %}{% if x == 1 %}{% continue %}{% endif %}{{ x }}{% endfor %}|{% for x in list %}{% if x == 1 %}{% break %}{% endif %}{{ x }}{% endfor %}
{% for x in [1, [2, [3]]] recursive %}{% if x is number %}{{ x }}{% else %}({{ loop(x) }}){% endif %}{{ loop.depth }}{% endfor %}
{% for x in list %}{% for y in list %}{{ x * y }}{{ loop.index }}{% endfor %}{{ loop.index }} {% endfor %}
{% for x in list %}{% set y = x %}{% endfor %}{{ y }}|{% set y = 0 %}{% for x in list %}{{ y }}{% set y = y + x %}{{ y }} {% endfor %}{{ y }}
{% set ns = namespace(n=0, seen=[]) %}{% for x in list %}{% set ns.n = ns.n + x %}{% set ns.seen = ns.seen + [x] %}{% endfor %}{{ ns.n }} {{ ns.seen }} {{ ns.nope is defined }} {{ ns['n'] }}
{% set ns = namespace({'a': 1}, b=2) %}{{ ns.a }}{{ ns.b }}{% set ns.c, d = 3, 4 %}{{ ns.c }}{{ d }}
{% set ns = namespace(_a=1) %}
{% set dict.x = 1 %}
{% set nowhere.x = 1 %}
{% set a, b = 1, 2 %}{{ a }}{{ b }}{% set c = 1, 2 %}{{ c }}{% set (e, f) = [5, 6] %}{{ e }}{{ f }}
{% set a, b = [1] %}
{% set block %}  in {{ n }} {% endset %}[{{ block }}]{% set up | upper | trim %}  abc {% endset %}[{{ up }}]{{ block is string }}
{% set block %}{% set inner = 5 %}{% endset %}{{ inner is defined }}{% if yes %}{% set shown = 6 %}{% endif %}{{ shown }}
{% filter upper %}abc {{ n }}{% set hidden = 1 %}{% endfilter %}{{ hidden is defined }}{% filter replace('a', 'b') | upper %}aaa{% endfilter %}
{% with a = 1, b = n %}{{ a }}{{ b }}{% set c = 3 %}{% endwith %}{{ a is defined }}{{ c is defined }}{% with %}{% set z = 1 %}{{ z }}{% endwith %}
{% macro m(a, b=2, c=none) %}{{ a }}-{{ b }}-{{ c }}{% endmacro %}{{ m(1) }} {{ m(1, 3) }} {{ m(c=5, a=4) }} {{ m() }}
{% macro m(a) %}{{ a }}{% endmacro %}{{ m(1, 2) }}
{% macro m(a) %}{{ a }}{% endmacro %}{{ m(b=2) }}
{% macro m() %}{{ varargs }}{{ kwargs }}{% endmacro %}{{ m(1, 2, x=3) }}
{% macro m(a, b=a * 2) %}{{ b }}{% endmacro %}{{ m(4) }}{% macro rec(k) %}{{ k }}{% if k > 0 %}{{ rec(k - 1) }}{% endif %}{% endmacro %}{{ rec(3) }}
{% set x = 1 %}{% macro m() %}{{ x }}{% set x = 5 %}{{ x }}{% endmacro %}{% set x = 2 %}{{ m() }}{{ x }}
{% macro wrap(tag) %}<{{ tag }}>{{ caller() }}</{{ tag }}>{% endmacro %}{% call wrap('b') %}in {{ n }}{% endcall %}
{% macro each(items) %}{% for i in items %}{{ caller(i, loop.index) }}{% endfor %}{% endmacro %}{% call(item, at) each(list) %}[{{ at }}:{{ item }}]{% endcall %}
{% macro m() %}x{% endmacro %}{% call m() %}y{% endcall %}
{% macro m() %}{{ caller is defined }}{{ caller }}{% endmacro %}{{ m() }}
{% macro m(x) %}{{ x is defined }}{{ x }}{% endmacro %}{{ m() }}{{ m(none) }}{{ m(foo) }}
{{ later(2) }}{% macro later(x) %}{{ x }}{% endmacro %}
{% for x in [1, 2] %}{% macro show() %}{{ x }}{% endmacro %}{{ show() }}{% endfor %}
{{ (lambda: 1)() }}
{% raw %}{{ not }} {% this %}{% endraw %}|{#- comment {{ x }} -#} | {# a #}b
a {%- if yes -%} b {%- endif -%} c|a {%+ if yes +%} b {%+ endif %} c
  {% if yes %}  
   x
  {% endif %}
y
{{- n -}}  z  {{- n }}
{% set x = 1 -%}

  text
    {%- set y = 2 %}  {{ x }}{{ y }}
{{ n }}


{% print n, 'a' %}{% if yes: %}colon{% endif %}
{{ [1, 2, 3,] }} {{ {'a': 1,} }} {{ (1, 2,) }} {{ 'a' 'b' "c" }} {{ '\x41\u0042\103\d\'' }}
{{ list.0 }} {{ dict['a']['b'].1 }}
{{ users | map(attribute='name') | map('lower') | sort | join(' ') | upper | replace('O', '0') }}
{{ users|selectattr('age','gt',26)|map(attribute='name')|first }} {{ (users|selectattr('age','gt',99)|list)[0] is defined }} {{ users[-1:][0]['name'] }}
{{ messages }}{{ n if n else m }}{{ 1 if foo is not defined else 2 }}
{{ namespace(a=1).a }} {{ strftime_now('%Y-%m-%d %H:%M %A %d %b %y %j') }}
{{ raise_exception('stop here') }}
{{ text | wordwrap(5) if false else 'skipped' }}
{% generation %}said {{ n }}{% endgeneration %} and \u00e9{% for x in list %}{% generation %}{{ x }}{% set g = 1 %}{% endgeneration %}{{ g is defined }}{% endfor %}
{% break %}
{% endif %}
{% if %}{% endif %}
{% if yes %}
{% for x in %}{% endfor %}
{% set 5 = x %}
{{ 1 + }}
{{ (1 }}
{{ 'unfinished }}
{{ a b }}
{% nope %}
{# never closed
{% raw %} never closed
{{ {'a' 1} }}
{{ x[ }}
{% macro %}{% endmacro %}
{% set x %}no end
{{ 1 }
{{ x is y is z }}
{{ f(a=1, 2) }}
{% macro m(a=1, b) %}{% endmacro %}
{{ 5 + 'a' if false else 'lazy' }} {{ [1/0] if no else 'fine' }}
{{ 'a' in ['A'|lower] and 3 > 2 or 1/0 }} {{ 1 if 2 else 3/0 }}
{{ {'content': 'x'}.content.split('x') }} {{ '' | trim == '' }} {{ 'a' != 'b' and 'c' not in 'ab' }}
"""


def parity():
    path = str(ROOT / "scripts/chat_template_parity")
    loader = importlib.machinery.SourceFileLoader("chat_template_parity", path)
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(loader.name, loader))
    loader.exec_module(module)
    return module


def result(peer, given):
    rendered = peer.render(given)
    if isinstance(rendered, str):
        return {"error": rendered[:80]}
    return {"text": rendered[0], **({"generations": rendered[1]} if rendered[1] else {})}


def main():
    tools = parity()
    common = {"messages": [], "tools": None, "documents": None, "add_generation_prompt": False}
    snippets = []
    for snippet in SNIPPETS.strip("\n").split("\n"):
        snippets.append({"template": snippet, **result(tools.Peer(snippet), {**common, **VARIABLES})})
    for text in ["  {% if yes %}  \n   x\n  {% endif %}\ny\n", "{{ n }}\n\n\n", "a\r\nb\rc\n{{ '\r\n' }}",
                 "{% set x = 1 -%}\n\n  text\n    {%- set y = 2 %}  {{ x }}{{ y }}\n", "\n{% raw %}\n a {% endraw %}\nb",
                 "a\n  {#- c -#}\n  b\n  {# d #}\nc", "x {{ n\n}} y\n{{\n'm'\n}}\n", "{% if no %}\n{% else %}\nz\n{% endif %}"]:
        snippets.append({"template": text, **result(tools.Peer(text), {**common, **VARIABLES})})
    draw = tools.Draw(25)
    templates = {}
    for path in sorted(OUT.glob("*.jinja")):
        peer = tools.Peer(path.read_text())
        assert peer.error is None, peer.error
        cases = []
        while len(cases) < CONVERSATIONS:
            given = tools.seen_by_templates(draw.conversation())
            if sum("error" in case for case in cases) < CONVERSATIONS // 3 or "error" not in result(peer, given):
                cases.append({"inputs": given, **result(peer, given)})
        templates[path.name] = cases
    out = OUT / "cases.json"
    out.write_text(json.dumps({"variables": VARIABLES, "snippets": snippets, "templates": templates},
                              ensure_ascii=False, indent=0) + "\n")
    refused = sum("error" in one for one in snippets)
    print(f"{len(snippets)} snippets, {refused} of them refused; {len(templates)} templates with "
          f"{CONVERSATIONS} conversations each; {out.stat().st_size // 1000} kB")


if __name__ == "__main__":
    main()

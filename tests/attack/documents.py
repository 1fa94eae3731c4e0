"""Documents made to blow up a stage: parsing, merging, the schema, the difference, the image, the texts. Each is at most 8 MiB, the
default of max_size; the name says what it does. Three tables: documents() (name, type, bytes), layers() (name, lower, upper) and schemas()
(name, schema, document)."""
import itertools
import json

LIMIT = 8 << 20  # max_size
VALUES = 99000  # a little under the most that a document may have
DEEP = 62


def fill(unit, size=LIMIT - 4096, head='', tail=''):
    """As many units as there is room for; {0} is the number of each, in eight digits."""
    one = len(unit.format(0).encode()) if '{' in unit else len(unit.encode())
    count = (size - len(head.encode()) - len(tail.encode())) // one
    body = ''.join(unit.format(i) for i in range(count)) if '{' in unit else unit * count
    return (head + body + tail).encode()


def keys(count, width, value='1'):
    return ''.join(f'k{i:0{width - 1}d}: {value}\n' for i in range(count)).encode()


def nested_keys(depth, width, leaves, form):
    """Every leaf's path is depth x width bytes."""
    inside = {f'l{i}': i for i in range(leaves)}
    for i in range(depth):
        inside = {chr(97 + i % 26) * width: inside}
    if form == 'json':
        return json.dumps(inside).encode()
    lines, at = [], inside
    for i in range(depth):
        (key, at), = at.items()
        lines.append(f'{" " * i}{key}:\n')
    return ''.join(lines + [f'{" " * depth}{k}: {v}\n' for k, v in at.items()]).encode()


def chains(count, depth, width):
    """Many paths that are deep, each of its own keys."""
    def chain(i):
        inside = i
        for d in range(depth):
            inside = {f'{i}-{d}'.ljust(width, 'x'): inside}
        return inside
    merged = {}
    for i in range(count):
        merged.update(chain(i))
    return json.dumps(merged).encode()


def flow(depth, items):
    return ('a: ' + '[' * depth + ','.join(['1'] * items) + ']' * depth + '\n').encode()


def aliases(levels, width, anchor='x'):
    text = f'a0: &a0 [{", ".join([anchor] * width)}]\n'
    for i in range(1, levels):
        text += f'a{i}: &a{i} [{", ".join([f"*a{i - 1}"] * width)}]\n'
    return text.encode()


def wide_merges(maps, width, users):
    text = ''.join(f'm{m}: &m{m} {{{", ".join(f"k{m}_{i}: 1" for i in range(width))}}}\n' for m in range(maps))
    return (text + ''.join(f'u{u}: {{<<: [{", ".join(f"*m{m}" for m in range(maps))}]}}\n' for u in range(users))).encode()


def parse_yaml():
    yield 'tags', fill('%TAG !t{0:08d}! tag:x,2000:\n', tail='--- \na: 1\n')
    yield 'tags_1.2MB', fill('%TAG !t{0:08d}! tag:x,2000:\n', 1200000, tail='--- \na: 1\n')
    yield 'tags_small', fill('%TAG !{0:08d}! x\n', 600000, tail='--- \na: 1\n')
    yield 'directives', fill('%X {0:08d}\n', tail='---\na: 1\n')
    yield 'directive_long', fill('x', head='%', tail='\n---\na: 1\n')
    yield 'directive_parameters', fill(' 1.1', head='%X', tail='\n---\na: 1\n')
    yield 'directive_blanks', fill(' ', head='%YAML', tail='1.2\n---\na: 1\n')
    yield 'directive_number', fill('1', head='%YAML ', tail='.2\n---\na: 1\n')
    yield 'directive_tag_prefix', fill('y', head='%TAG ! tag:', tail='\n---\na: 1\n')
    yield 'version_comments', fill('# {0:08d}\n', head='%YAML 1.2\n', tail='---\na: 1\n')
    yield 'long_comment', fill('#', head='a: 1\n')
    yield 'comments', fill('#\n', head='a: 1\n')
    yield 'blank_lines', fill('\n', head='a: 1\n')
    yield 'blanks', fill(' ', head='a: 1\n', tail='\n')
    yield 'blanks_before', fill(' ', tail='a: 1\n')
    yield 'carriage_returns', fill('\r', head='a: 1\n')
    yield 'indented_blank_lines', fill(' ' * 100 + '\n', head='a: 1\n')
    yield 'keys_64', keys(98000, 64)
    yield 'keys_8', keys(VALUES, 8)
    yield 'keys_80', keys(95000, 80)
    yield 'keys_1000', keys(8000, 1000)
    yield 'keys_quoted', ''.join(f'"k{i:07d}": "v"\n' for i in range(VALUES)).encode()
    yield 'keys_escaped', ''.join(f'"\\u006b\\u006b\\u006b\\u006b{i:07d}": 1\n' for i in range(VALUES)).encode()
    yield 'keys_reversed', b''.join(reversed(keys(98000, 64).splitlines(True)))
    yield 'keys_differ_at_the_end', ''.join(f'{"k" * 70}{i:06d}: 1\n' for i in range(95000)).encode()
    yield 'keys_explicit', ''.join(f'? k{i:07d}\n: 1\n' for i in range(VALUES)).encode()
    yield 'keys_tagged', ''.join(f'!!str k{i:07d}: !!str v\n' for i in range(VALUES)).encode()
    yield 'key_multiline', fill('x\n ', head='? ', tail='\n: 1\n')
    yield 'long_key', fill('x', head='"', tail='": 1\n')
    yield 'long_key_explicit', fill('x', head='? ', tail='\n: 1\n')
    yield 'long_value', fill('x', head='a: ', tail='\n')
    yield 'value_words', fill('x ', head='a: ', tail='y\n')
    yield 'value_colons', fill(':x', head='a: x', tail='\n')
    yield 'value_lines', fill('x\n ', head='a: ', tail='\n')
    yield 'value_blank_lines', fill('x\n\n ', head='a: ', tail='y\n')
    yield 'value_breaks', fill('\n', head='a: x', tail=' y\n')
    yield 'quoted_breaks', fill('\n', head='a: "x', tail='y"\n')
    yield 'quoted_blanks', fill(' ', head='a: "x', tail='y"\n')
    yield 'quoted_escapes', fill('\\u263a', head='a: "', tail='"\n')
    yield 'quoted_short_escapes', fill('\\n', head='a: "', tail='"\n')
    yield 'quoted_long_escapes', fill('\\U0001f600', head='a: "', tail='"\n')
    yield 'quoted_folds', fill('\\\n ', head='a: "', tail='"\n')
    yield 'single_quotes', fill("''", head="a: '", tail="'\n")
    yield 'literal', fill(' x\n', head='a: |\n')
    yield 'literal_blank_lines', fill('\n', head='a: |\n  x\n', tail='  y\n')
    yield 'literal_leading_blanks', fill(' ' * 50 + '\n', head='a: |\n', tail=' ' * 60 + 'y\n')
    yield 'literal_indent', fill(' ', head='a: |\n', tail='y\n')
    yield 'folded', fill(' x\n', head='a: >\n')
    yield 'folded_blank_lines', fill(' x\n\n', head='a: >\n')
    yield 'literals', ''.join(f'k{i:06d}: |\n x\n' for i in range(VALUES)).encode()
    yield 'flow_deep', flow(DEEP, 90000)
    yield 'flow_too_deep', fill('[', head='a: ')
    yield 'flow_maps_too_deep', fill('{{a: ', head='a: ')
    yield 'flow_list', flow(1, VALUES)
    yield 'flow_pairs', ('a: [' + ', '.join(f'k{i}: 1' for i in range(45000)) + ']\n').encode()
    yield 'flow_keys_only', ('a: {' + ', '.join(f'k{i:06d}' for i in range(VALUES)) + '}\n').encode()
    yield 'flow_question', ('a: {' + ', '.join(f'? k{i:06d}' for i in range(VALUES)) + '}\n').encode()
    yield 'flow_commas', fill(',', head='a: [', tail=']\n')
    yield 'flow_multiline_key', ('{' + '\n'.join(['x'] * 400000) + ': 1}\n').encode()
    yield 'flow_unclosed', fill('x, ', head='a: [')
    yield 'flow_simple_keys', fill('"a" ', head='a: [')
    yield 'flow_deep_simple_keys', ('a: ' + '[' * DEEP + '1, ' * 90000 + ']' * DEEP + '\n').encode()
    yield 'block_deep', ''.join(' ' * i + 'k:\n' for i in range(64)).encode()
    yield 'block_too_deep', b''.join(b' ' * i + b'k:\n' for i in range(4000))[:LIMIT]
    yield 'block_sequences_too_deep', fill('- ', head='a:\n ', tail='1\n')
    yield 'sequence', ('a:\n' + '- 1\n' * VALUES).encode()
    yield 'sequence_empty', ('a:\n' + '-\n' * VALUES).encode()
    yield 'question_marks', fill('? ', tail='a\n')
    yield 'indented_deep', ''.join(' ' * 100000 + f'k{i}: 1\n' for i in range(80)).encode()
    yield 'anchors', ''.join(f'k{i}: &a{i} 1\n' for i in range(990)).encode() + b'z: [' + b', '.join([b'*a1'] * 90000) + b']\n'
    yield 'anchors_many', ''.join(f'k{i}: &a{i} 1\n' for i in range(VALUES)).encode()
    yield 'anchors_long', ''.join(f'k{i}: &{"a" * 4000}{i} 1\n' for i in range(990)).encode() + \
        ('z: [' + ', '.join([f'*{"a" * 4000}0'] * 1000) + ']\n').encode()
    yield 'anchors_alike', ''.join(f'k{i}: &{"a" * 60}{i:03d} 1\n' for i in range(990)).encode() + \
        ('z: [' + ', '.join([f'*{"a" * 60}000'] * 90000) + ']\n').encode()
    yield 'anchor_same', ''.join(f'k{i}: &a 1\n' for i in range(990)).encode()
    yield 'anchor_name', fill('a', head='a: &', tail=' 1\n')
    yield 'aliases_nodes', aliases(9, 9)
    yield 'aliases_texts', ('a: &a "' + 'x' * 1000000 + '"\nb: [' + ', '.join(['*a'] * 70) + ']\n').encode()
    yield 'aliases_keys', ('a: &a {' + 'k' * 1000000 + ': 1}\nb: [' + ', '.join(['*a'] * 70) + ']\n').encode()
    yield 'aliases_flat', ('a: &a [' + ', '.join(['1'] * 300) + ']\n' + ''.join(f'k{i}: *a\n' for i in range(320))).encode()
    yield 'aliases_wide_text', ('a: &a "' + 'x' * 3600000 + '"\nb: [' + ', '.join(['*a'] * 7) + ']\n').encode()
    yield 'aliases_offsets', (''.join(f'k{i}: &a{i} é\n' for i in range(900)) + 'z: [' + ', '.join(f'*a{i % 900}' for i in range(90000)) + ']\n').encode()
    yield 'merge_keys', wide_merges(3, 100, 300)
    yield 'merge_keys_alike', ('m: &m {' + ', '.join(f'k{i}: 1' for i in range(500)) + '}\n' + ''.join(f'u{i}: {{<<: [*m, *m, *m, *m]}}\n' for i in range(49))).encode()
    yield 'merge_keys_long', ('m: &m {' + ', '.join(f'{"k" * 1000}{i}: 1' for i in range(400)) + '}\n' + ''.join(f'u{i}: {{<<: *m}}\n' for i in range(7))).encode()
    yield 'tag_long', fill('x', head='a: !<tag:', tail='> 1\n')
    yield 'tag_escapes', fill('%41', head='a: !<tag:', tail='> 1\n')
    yield 'tag_suffix', fill('x', head='a: !', tail=' 1\n')
    yield 'tags_used', ''.join(f'k{i:07d}: !!int {i}\n' for i in range(VALUES)).encode()
    yield 'tags_verbatim', ''.join(f'k{i:07d}: !<tag:yaml.org,2002:int> {i}\n' for i in range(VALUES)).encode()
    yield 'documents', fill('---\n', tail='a: 1\n')
    yield 'document_ends', fill('...\n', head='a: 1\n')
    yield 'numbers', ('a: [' + ', '.join(['1.7976931348623157e308'] * VALUES) + ']\n').encode()
    yield 'numbers_long', ('a: [' + ', '.join(['0.' + '1' * 800000] * 9) + ']\n').encode()
    yield 'integers_long', ('a: [' + ', '.join(['0' * 800000 + '1'] * 9) + ']\n').encode()
    yield 'exponents_long', ('a: [' + ', '.join(['1e-' + '0' * 800000 + '1'] * 9) + ']\n').encode()
    yield 'number_too_large', ('a: ' + '9' * (LIMIT - 4096) + '\n').encode()
    yield 'wide_characters', fill('\U0001f600', head='a: ', tail='\n')
    yield 'wide_keys', ''.join(f'{"é" * 30}{i:05d}: 1\n' for i in range(98000)).encode()
    yield 'nbsp', fill('\u00a0', head='a: x', tail='x\n')
    yield 'questions_inside', ''.join(f'k{i:07d}: "?"\n' for i in range(VALUES)).encode()
    yield 'nul_at_the_end', fill('x', head='a: ', tail='\0')
    yield 'bom_inside', fill('x', head='a: ', tail='\ufeff')
    yield 'bad_utf8_at_the_end', fill('x', head='a: ') + b'\xff'
    yield 'error_at_the_end', keys(98000, 64) + b'}\n'
    yield 'duplicate_at_the_end', keys(98000, 64) + b'k' + b'0' * 63 + b': 1\n'
    yield 'unclosed_quote', fill('x\n', head='a: "')
    yield 'tab_at_the_end', fill('k{0:08d}: 1\n', 1200000, tail='\tx: 1\n')
    yield 'too_many_values', fill('- 1\n', head='a:\n')
    yield 'too_many_keys', fill('k{0:08d}: 1\n')


def parse_json():
    yield 'j_keys', json.dumps({f'k{i:063d}': 1 for i in range(98000)}).encode()
    yield 'j_short_keys', json.dumps({f'{i:x}': 1 for i in range(VALUES)}).encode()
    yield 'j_keys_escaped', ('{' + ','.join(f'"\\u006b\\u006b{i:07d}":1' for i in range(VALUES)) + '}').encode()
    yield 'j_keys_too_many', ('{' + ','.join(f'"{i:x}":1' for i in range(700000)) + '}').encode()
    yield 'j_deep', ('{"a":' + '[' * DEEP + ','.join(['1'] * 90000) + ']' * DEEP + '}').encode()
    yield 'j_too_deep', fill('[', head='{{"a":')
    yield 'j_too_deep_maps', fill('{{"a":')
    yield 'j_list', ('{"a":[' + ','.join(['1'] * VALUES) + ']}').encode()
    yield 'j_empty_lists', ('{"a":[' + ','.join(['[]'] * VALUES) + ']}').encode()
    yield 'j_empty_maps', ('{"a":[' + ','.join(['{}'] * VALUES) + ']}').encode()
    yield 'j_commas', fill(',', head='{{"a":[', tail=']}}')
    yield 'j_numbers', ('{"a":[' + ','.join(['1.7976931348623157e308'] * VALUES) + ']}').encode()
    yield 'j_numbers_long', ('{"a":[' + ','.join(['0.' + '1' * 800000] * 9) + ']}').encode()
    yield 'j_number_too_large', ('{"a":' + '9' * (LIMIT - 4096) + '}').encode()
    yield 'j_string', ('{"a":"' + 'x' * (LIMIT - 4096) + '"}').encode()
    yield 'j_string_escapes', ('{"a":"' + '\\n' * (LIMIT // 2 - 4096) + '"}').encode()
    yield 'j_string_unicode', ('{"a":"' + '\\u263a' * (LIMIT // 6 - 4096) + '"}').encode()
    yield 'j_string_backslashes', ('{"a":"' + '\\\\' * (LIMIT // 2 - 4096) + '"}').encode()
    yield 'j_string_quotes', ('{"a":"' + '\\"' * (LIMIT // 2 - 4096) + '"}').encode()
    yield 'j_strings_backslashes', ('{"a":[' + ','.join(['"\\\\\\""'] * VALUES) + ']}').encode()
    yield 'j_blanks', ('{' + ' ' * (LIMIT - 4096) + '"a":1}').encode()
    yield 'j_lines', ('{' + '\n' * (LIMIT - 4096) + '"a":1}').encode()
    yield 'j_duplicate', ('{' + ','.join(f'"k{i:063d}":1' for i in range(98000)) + ',"k' + '0' * 63 + '":1}').encode()
    yield 'j_duplicate_nested', ('{"a":{' + ','.join(f'"k{i:063d}":1' for i in range(98000)) + '},"a":1}').encode()
    yield 'j_error_at_the_end', json.dumps({f'k{i:063d}': 1 for i in range(98000)}).encode() + b'x'
    yield 'j_unclosed', json.dumps({f'k{i:063d}': 1 for i in range(98000)}).encode()[:-1]
    yield 'j_truncated_string', ('{"a":"' + 'x' * (LIMIT - 4096)).encode()
    yield 'j_quote_error', ('{"a":"' + '\\\\' * (LIMIT // 2 - 4096) + '" x').encode()
    yield 'j_null_key', ('{"' + '\\\\' * (LIMIT // 2 - 4096) + '\\u0000":1}').encode()
    yield 'j_surrogates', ('{"a":"' + '\\ud83d\\ude00' * (LIMIT // 12 - 4096) + '"}').encode()
    yield 'j_maps', ('{"a":[' + ','.join(['{"a":1}'] * 49000) + ']}').encode()
    yield 'j_words', ('{"a":[' + ','.join(['true,false,null'] * 33000) + ']}').encode()


def shapes():
    """What is small in a text, and large where each value has its whole path: images, differences, env, properties."""
    for width, leaves in ((60000, 200), (60000, 5000), (100000, 1000), (120000, 20), (1000, 90000), (8000, 90000), (20, 90000)):
        for form in ('json', 'yaml'):
            if form == 'json' or width < 1000:
                yield f's_nested_{width}_{leaves}_{form}', nested_keys(60, width, leaves, form)
    yield 's_long_key_above_many', (json.dumps({'x' * 8000000: {f'{i}': 1 for i in range(30000)}})).encode()
    yield 's_dots', (json.dumps({'.' * 4000000: {f'{i}': 1 for i in range(30000)}})).encode()
    yield 's_chains', chains(1500, 60, 30)
    yield 's_chains_wide', chains(200, 60, 600)
    yield 's_chains_short', chains(1600, 60, 1)
    yield 's_list_of_maps', json.dumps({'l': [{'a': i, 'b': i} for i in range(33000)]}).encode()
    yield 's_lists_of_lists', json.dumps({'l': [[i] for i in range(49000)]}).encode()
    yield 's_list_below_long_key', json.dumps({'y' * 50000: list(range(98000))}).encode()
    yield 's_long_keys', json.dumps({f'{"z" * 8000}{i}': i for i in range(1000)}).encode()
    yield 's_control_characters', json.dumps({'a': '\x01\x02' * 690000}).encode()
    yield 's_control_keys', json.dumps({'\x01\x02' * 10 + str(i): 1 for i in range(60000)}).encode()
    yield 's_strings', json.dumps({f'k{i}': '\x01' * 12 for i in range(90000)}).encode()
    yield 's_multiline', json.dumps({'a': 'x\n' * 2700000}).encode()
    yield 's_multiline_deep', json.dumps({'a': {'b': {'c': [['x\n' * 1300000]]}}}).encode()
    yield 's_multiline_nested', nested_lines(60, 1300000)
    yield 's_env_names', json.dumps({f'{"a" * 40}{"-._"[i % 3]}{i:05d}': 1 for i in range(98000)}).encode()
    yield 's_quotes', json.dumps({'a': "'" * (LIMIT - 4096)}).encode()
    yield 's_unicode', json.dumps({'a': '\u00e9' * 4000000}, ensure_ascii=False).encode()
    yield 's_next_line', json.dumps({'a': '\u0085' * 1300000}).encode()
    yield 's_emoji', json.dumps({'a': '\U0001f600' * 600000}).encode()
    yield 's_deep_items', nested_items(60, 30000)


def nested_lines(depth, count):
    inside = 'x\n' * count
    for _ in range(depth):
        inside = {'k': inside}
    return json.dumps(inside).encode()


def nested_items(depth, count):
    """Each item is indented by the depth: what JSON writes is far larger than what was read."""
    inside = [1] * count
    for _ in range(depth):
        inside = [inside]
    return json.dumps({'k': inside}).encode()


def documents():
    """(name, type, text) of each."""
    for name, text in itertools.chain(parse_yaml(), parse_json(), shapes()):
        kind = 'json' if text[:1] == b'{' and not name.startswith('flow') else 'yaml'
        if len(text) > LIMIT:
            raise AssertionError(f'{name} has {len(text)} bytes')
        yield name, kind, text


def tree(depth, width, leaf):
    """A mapping of mappings, each with so many keys."""
    return {f'k{i}': tree(depth - 1, width, leaf) if depth > 1 else leaf for i in range(width)}


def layers():
    """(name, lower, upper): what is merged. Half of max_size each at most."""
    half = LIMIT // 2
    yield 'l_all_new', keys(49000, 64), b''.join(b'n' + line[1:] for line in keys(49000, 64).splitlines(True))
    yield 'l_all_replaced', keys(49000, 64), keys(49000, 64, '2')
    yield 'l_all_deleted', keys(49000, 64), keys(49000, 64, 'null')
    yield 'l_deletes_what_is_not_there', b'a: 1\n', keys(90000, 20, 'null')
    yield 'l_reversed', keys(49000, 64), b''.join(reversed(keys(49000, 64, '2').splitlines(True)))
    yield 'l_same_beginnings', ''.join(f'{"k" * 70}{i:06d}: 1\n' for i in range(49000)).encode(), \
        ''.join(f'{"k" * 70}{i:06d}: 2\n' for i in reversed(range(49000))).encode()
    yield 'l_deep', nested_keys(60, 20, 45000, 'json'), nested_keys(60, 20, 45000, 'json')
    yield 'l_deep_other_leaves', nested_keys(60, 1000, 30000, 'json'), nested_keys(60, 1000, 1, 'json')
    yield 'l_map_on_list', ('a: [' + ', '.join(['1'] * 90000) + ']\n').encode(), json.dumps({'a': {f'k{i}': 1 for i in range(90000)}}).encode()
    yield 'l_list_on_map', json.dumps({'a': {f'k{i}': 1 for i in range(90000)}}).encode(), ('a: [' + ', '.join(['1'] * 90000) + ']\n').encode()
    yield 'l_scalar_on_map', json.dumps({'a': {f'k{i}': 1 for i in range(90000)}}).encode(), b'a: 1\n'
    yield 'l_aliases_each', ('a: &a [' + ', '.join(['1'] * 300) + ']\n' + ''.join(f'k{i}: *a\n' for i in range(320))).encode(), \
        ('a: &a [' + ', '.join(['2'] * 300) + ']\n' + ''.join(f'k{i}: *a\n' for i in range(320))).encode()
    yield 'l_aliases_of_maps', ('a: &a {' + ', '.join(f'k{i}: 1' for i in range(300)) + '}\n' + ''.join(f'u{i}: *a\n' for i in range(320))).encode(), \
        ('a: &a {' + ', '.join(f'k{i}: null' for i in range(300)) + '}\n' + ''.join(f'u{i}: *a\n' for i in range(320))).encode()
    yield 'l_merge_keys', wide_merges(2, 100, 200), wide_merges(2, 100, 200)
    yield 'l_long_texts', b'a: ' + b'x' * (half - 100) + b'\n', b'b: ' + b'x' * (half - 100) + b'\n'
    yield 'l_long_keys', b'"' + b'x' * (half - 100) + b'": 1\n', b'"' + b'x' * (half - 100) + b'": 2\n'
    yield 'l_too_many_together', keys(90000, 20), b''.join(b'n' + line[1:] for line in keys(90000, 20).splitlines(True))
    yield 'l_long_key_above_many', json.dumps({'x' * 3000000: {f'{i}': 1 for i in range(30000)}}).encode(), \
        json.dumps({'x' * 3000000: {f'n{i}': 1 for i in range(30000)}}).encode()
    yield 'l_tree', json.dumps(tree(5, 9, 1)).encode(), json.dumps(tree(5, 9, None)).encode()
    yield 'l_empty_maps', json.dumps({f'k{i}': {} for i in range(90000)}).encode(), json.dumps({f'k{i}': {'a': None} for i in range(45000)}).encode()
    yield 'l_bad_upper', keys(49000, 64), keys(49000, 64) + b'}\n'


def schemas():
    """(name, schema, document): what a schema costs that looks at each value many times."""
    numbers = json.dumps({'a': list(range(98000))}).encode()
    words = json.dumps({'a': [f'{"a" * 60}{i:05d}' for i in range(90000)]}).encode()
    maps = json.dumps({'a': [{'b': i} for i in range(49000)]}).encode()

    def items(schema):
        return {'properties': {'a': {'items': schema}}}
    yield 'c_unique_numbers', {'properties': {'a': {'uniqueItems': True}}}, numbers
    yield 'c_unique_words', {'properties': {'a': {'uniqueItems': True}}}, words
    yield 'c_unique_maps', {'properties': {'a': {'uniqueItems': True}}}, maps
    yield 'c_unique_lists', {'properties': {'a': {'uniqueItems': True}}}, json.dumps({'a': [[i] for i in range(49000)]}).encode()
    yield 'c_unique_long', {'properties': {'a': {'uniqueItems': True}}}, json.dumps({'a': ['x' * 8000 + str(i) for i in range(1000)]}).encode()
    yield 'c_unique_alike', {'properties': {'a': {'uniqueItems': True}}}, json.dumps({'a': [[1] * 300 + [i] for i in range(320)]}).encode()
    yield 'c_unique_numbers_alike', {'properties': {'a': {'uniqueItems': True}}}, ('{"a":[' + ','.join(f'1{"0" * 60}.{i}' for i in range(90000)) + ']}').encode()
    yield 'c_pattern_backtracks', items({'pattern': '^(a+)+$'}), words
    yield 'c_pattern_one_long', {'properties': {'a': {'pattern': '(x+x+)+y'}}}, b'{"a":"' + b'x' * 4000000 + b'"}'
    yield 'c_pattern_lookahead', {'properties': {'a': {'pattern': '(?=(x+))(?=(.*)*z)'}}}, b'{"a":"' + b'x' * 4000000 + b'"}'
    yield 'c_pattern_many', items({'allOf': [{'pattern': f'a{{{i}}}.*b'} for i in range(1, 60)]}), words
    yield 'c_pattern_properties', {'patternProperties': {f'^k.*{i}.*{i}$': {'type': 'integer'} for i in range(60)}}, keys(98000, 64)
    yield 'c_ref_to_itself', {'$ref': '#'}, b'{"a": 1}'
    yield 'c_ref_circle', {'$defs': {'a': {'$ref': '#/$defs/b'}, 'b': {'$ref': '#/$defs/a'}}, '$ref': '#/$defs/a'}, b'{"a": 1}'
    yield 'c_ref_doubles', {'$defs': {**{f'd{i}': {'allOf': [{'$ref': f'#/$defs/d{i + 1}'}] * 2} for i in range(30)}, 'd30': True}, '$ref': '#/$defs/d0'}, b'{"a": 1}'
    yield 'c_any_of_doubles', {'$defs': {**{f'd{i}': {'anyOf': [{'$ref': f'#/$defs/d{i + 1}'}] * 2} for i in range(30)}, 'd30': False}, '$ref': '#/$defs/d0'}, b'{"a": 1}'
    yield 'c_one_of_many', items({'oneOf': [{'const': i} for i in range(300)]}), numbers
    yield 'c_any_of_many', items({'anyOf': [{'type': 'string'}] * 300}), numbers
    yield 'c_enum_many', items({'enum': list(range(1000, 200000, 2))}), numbers
    yield 'c_enum_long', items({'enum': ['x' * 60000 + str(i) for i in range(60)]}), json.dumps({'a': ['x' * 60000] * 100}).encode()
    yield 'c_contains', {'properties': {'a': {'contains': {'const': -1}, 'allOf': [{'contains': {'const': -i}} for i in range(2, 200)]}}}, numbers
    yield 'c_errors_many', items({'type': 'string'}), numbers
    yield 'c_not_not', items({'not': {'not': {'not': {'not': {'type': 'string'}}}}}), numbers
    yield 'c_recursive', {'$defs': {'n': {'additionalProperties': {'$ref': '#/$defs/n'}}}, '$ref': '#/$defs/n'}, nested_keys(60, 20, 90000, 'json')
    yield 'c_recursive_doubles', {'$defs': {'n': {'anyOf': [{'additionalProperties': {'$ref': '#/$defs/n'}, 'maxProperties': 0}] * 2}}, '$ref': '#/$defs/n'}, \
        nested_keys(60, 20, 900, 'json')
    yield 'c_unevaluated', {'allOf': [{'properties': {f'k{i:07d}': True for i in range(2000)}}] * 20, 'unevaluatedProperties': {'type': 'string'}}, keys(98000, 8)
    yield 'c_unevaluated_deep', {'$defs': {'n': {'anyOf': [{'properties': {'x': True}}, {'additionalProperties': {'$ref': '#/$defs/n'}}], 'unevaluatedProperties': False}},
                                 '$ref': '#/$defs/n'}, nested_keys(60, 20, 30000, 'json')
    yield 'c_property_names', {'propertyNames': {'pattern': '^(k+0*)*x$'}}, keys(98000, 64)
    yield 'c_dependent', {'dependentRequired': {f'k{i:07d}': [f'k{i + 1:07d}'] for i in range(20000)}}, keys(98000, 8)
    yield 'c_lengths', items({'minLength': 1, 'maxLength': 60}), words
    yield 'c_multiple_of', items({'multipleOf': 1e-300}), ('{"a":[' + ','.join(['1.7976931348623157e308'] * 90000) + ']}').encode()
    yield 'c_long_numbers', items({'multipleOf': 3, 'maximum': 5}), ('{"a":[' + ','.join(['0.' + '1' * 80000] * 90) + ']}').encode()

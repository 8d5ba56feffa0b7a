// tokenizers_agree.js FOLDER ONX [--write]: compares @huggingface/tokenizers (which transformers.js uses) with `onx tokenize`, for the
// tokenizers of tokenizers.py and the lines of tests/cases/token/texts.txt; for SentencePiece models it uses the output of spm_encode. --write
// stores the expected output next to the texts. NODE_PATH is the folder of the npm packages.
const fs = require('fs');
const path = require('path');
const { execFileSync } = require('child_process');
const { Tokenizer } = require('@huggingface/tokenizers');

const [folder, onx, write] = process.argv.slice(2);
const cases = path.join(__dirname, '../tests/cases/token');
const lines = fs.readFileSync(path.join(cases, 'texts.txt'), 'utf8').split('\n').slice(0, -1);

function run(args, input) {
    return execFileSync(onx, ['tokenize', ...args], { input, encoding: 'utf8' }).split('\n').slice(0, -1);
}

function compare(name, what, expected, got) {
    let bad = 0;
    expected.forEach((e, i) => {
        if (e === got[i])
            return;
        if (bad++ < 4)
            console.log(`${name}: ${what} ${JSON.stringify(lines[i])}\n  expected ${e}\n  got      ${got[i]}`);
    });
    console.log(`${name}: ${what} ${expected.length - bad} of ${expected.length} agree`);
    return bad;
}

let bad = 0;
for (const name of fs.readdirSync(folder).sort()) {
    const dir = path.join(folder, name);
    let ids, texts, plain = [];
    if (fs.existsSync(path.join(dir, 'tokenizer.json'))) {
        const file = JSON.parse(fs.readFileSync(path.join(dir, 'tokenizer.json'), 'utf8'));
        const tokenizer = new Tokenizer(file, { clean_up_tokenization_spaces: false });
        const lists = lines.map(line => tokenizer.encode(line).ids);
        ids = lists.map(list => list.join(' '));
        texts = lists.map(list => list.length ? tokenizer.decode(list, { skip_special_tokens: true }) : '');
    } else if (fs.existsSync(path.join(dir, 'ids'))) {
        ids = fs.readFileSync(path.join(dir, 'ids'), 'utf8').split('\n').slice(0, -1);
        texts = fs.readFileSync(path.join(dir, 'texts'), 'utf8').split('\n').slice(0, -1);
        plain = ['--plain'];
    } else {
        continue;
    }
    const got = run([dir, '--lines', ...plain], lines.join('\n') + '\n');
    bad += compare(name, 'ids', ids, got);
    bad += compare(name, 'texts', texts, run([dir, '--decode', '--lines'], ids.join('\n') + '\n'));
    if (write && fs.existsSync(path.join(cases, name + '.ids')))
        fs.writeFileSync(path.join(cases, name + '.ids'), ids.join('\n') + '\n');
}
process.exit(bad ? 1 : 0);

// Models that onx quantises and halves, run by onnxruntime-node and by onx on the same inputs: node quantized.js ONX MODEL...
// Prints what onnxruntime refuses, and how far its outputs are from those of onx (the root of the ratio of the sums of
// squares). Needs onnxruntime-node in NODE_PATH.
const ort = require('onnxruntime-node')
const { execFileSync } = require('child_process')
const fs = require('fs')
const os = require('os')
const path = require('path')

const [onx, ...models] = process.argv.slice(2)
const ways = [
    ['precision', '--to', 'float16', '--keep-io'],
    ['quantize', '--mode', 'dynamic'],
    ['quantize', '--mode', 'static'],
    ['quantize', '--mode', 'static', '--form', 'qlinear'],
    ['quantize', '--mode', 'weights'],
    ['quantize', '--mode', 'weights', '--weight-type', 'int4'],
]

// The floats of an .npy file, version 1.
function floats(file) {
    const bytes = fs.readFileSync(file)
    const header = bytes.toString('latin1', 10, 10 + bytes.readUInt16LE(8))
    const dims = header.match(/'shape': \(([^)]*)\)/)[1].split(',').filter((x) => x.trim()).map(Number)
    const data = bytes.subarray(10 + bytes.readUInt16LE(8))
    if (!header.includes("'<f4'")) throw new Error('not of floats')
    return { dims, data: new Float32Array(data.buffer.slice(data.byteOffset, data.byteOffset + data.length)) }
}

function apart(a, b) {
    let whole = 0, wrong = 0
    for (let i = 0; i < a.length; i++) {
        whole += a[i] * a[i]
        wrong += (a[i] - b[i]) * (a[i] - b[i])
    }
    return wrong === 0 ? 0 : Math.sqrt(wrong / whole)
}

async function compare(model, way, folder) {
    const made = path.join(folder, 'made.onnx'), x = path.join(folder, 'x.npy')
    execFileSync(onx, [way[0], model, '-o', made, ...way.slice(1)], { stdio: 'ignore' })
    const session = await ort.InferenceSession.create(made, { intraOpNumThreads: 1, logSeverityLevel: 4 })
    if (session.inputNames.length !== 1) return 'has several inputs'
    const input = floats(x)
    const result = await session.run({ [session.inputNames[0]]: new ort.Tensor('float32', input.data, input.dims) })
    const out = path.join(folder, 'out')
    execFileSync(onx, ['run', made, '-i', `${session.inputNames[0]}=${x}`, '-o', out, '--npy'], { stdio: 'ignore' })
    const ours = floats(path.join(out, 'output_0.npy'))
    const theirs = result[session.outputNames[0]].data
    return `departs by ${apart(theirs, ours.data).toExponential(2)}`
}

// An .npy file of numbers that are the same everywhere.
function write(file, dims) {
    const count = dims.reduce((a, b) => a * b, 1)
    let header = `{'descr': '<f4', 'fortran_order': False, 'shape': (${dims.join(', ')},), }`
    header = header.padEnd(117) + '\n'
    const start = Buffer.from([0x93, 0x4e, 0x55, 0x4d, 0x50, 0x59, 1, 0, header.length, 0])
    const data = new Float32Array(count).map((_, i) => Math.sin(0.37 * i))
    fs.writeFileSync(file, Buffer.concat([start, Buffer.from(header, 'latin1'), Buffer.from(data.buffer)]))
}

async function main() {
    for (const model of models) {
        const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'onx-'))
        const about = JSON.parse(execFileSync(onx, ['info', '--json', model]))
        const dims = ((about.graph.inputs || [])[0] || {}).type?.match(/\[(.*)\]/)?.[1].split(',').map((d) => Number(d) || 1)
        for (const way of ways) {
            let said
            try {
                write(path.join(folder, 'x.npy'), dims)
                said = await compare(model, way, folder)
            } catch (error) {
                said = `refused: ${String(error.message).split('\n')[0].slice(0, 140)}`
            }
            console.log(`${path.basename(model)} ${way.join(' ')}: ${said}`)
        }
        fs.rmSync(folder, { recursive: true })
    }
}
main()

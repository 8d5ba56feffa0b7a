// worker.js - the program in a worker of the page. web/npm/lib and Emscripten's code follow it in the same script. The page
// sends the compiled module once, then jobs: the words of a command, and files.

onmessage = async ({ data }) => {
    if (data.module) {
        compiled.program = Promise.resolve({ module: data.module, create: Module });
        return;
    }
    try {
        postMessage({ job: data.job, result: await run(data.words, data.files, data.outputs) });
    } catch (error) {
        postMessage({ job: data.job, error: error.message });
    }
};

// In the module with threads: workers are created by lib/threads.js, in browsers and in Node.
var Worker = Module["Worker"];

// Prints how long importing a module takes, as the first thing that a process does.
const startedAt = performance.now();
await import(process.argv[2] as string);
console.log(performance.now() - startedAt);

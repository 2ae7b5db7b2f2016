// Prints how long the import of a module takes as the first action of a process.
const startedAt = performance.now();
await import(process.argv[2] as string);
console.log(performance.now() - startedAt);

#!/usr/bin/env node
import { versionOfPackage } from "./package-files.ts";

// `--version` does not load the rest of the program, which takes much longer than starting Node.
const [first, ...rest] = process.argv.slice(2);
if (first === "--version" && rest.length === 0) console.log(versionOfPackage());
else await import("./main.ts");

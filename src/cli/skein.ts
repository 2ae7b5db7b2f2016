#!/usr/bin/env node
import { versionOfPackage } from "./package-files.ts";

// The rest of the program is loaded only where more is asked for, as it takes much longer than Node does to start.
const [first, ...rest] = process.argv.slice(2);
if (first === "--version" && rest.length === 0) console.log(versionOfPackage());
else await import("./main.ts");

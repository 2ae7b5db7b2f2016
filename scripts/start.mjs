import { once } from "node:events";
import { mkdirSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { main, root, run, SetupError } from "./run.mjs";
import { ensureBuild, ensurePackages } from "./setup.mjs";

const firstPort = 4117;
const portsMax = 50;
const folder = join(root, ".cache/start");

await main(async () => {
  const given = process.argv.slice(2);
  await ensurePackages();
  await ensureBuild();
  const defaults = {
    "--samples": null,
    "--workspace": join(folder, "workspace"),
    "--store": `sqlite:${join(folder, "skein.db")}`,
    "--port": String(await nextPort()),
  };
  mkdirSync(defaults["--workspace"], { recursive: true, mode: 0o700 });
  // Options of the user take precedence over the defaults.
  const left = Object.entries(defaults).filter(
    ([name]) => !given.some((argument) => argument === name || argument.startsWith(`${name}=`)),
  );
  const args = left.flatMap(([name, value]) => (value === null ? [name] : [name, value]));
  return run(process.execPath, [join(root, "dist/cli/skein.js"), "serve", ...args, ...given], { cwd: process.cwd() });
});

/** The first free port from 4117 on. */
async function nextPort() {
  for (let port = firstPort; port < firstPort + portsMax; port++) if (await isFree(port)) return port;
  throw new SetupError(`No port from ${firstPort} to ${firstPort + portsMax - 1} is free; give one with --port.`);
}

/** @param {number} port */
async function isFree(port) {
  const server = createServer().listen(port, "127.0.0.1");
  try {
    await once(server, "listening");
  } catch {
    return false;
  }
  server.close();
  await once(server, "close");
  return true;
}

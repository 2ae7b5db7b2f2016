import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

/** The version of the package that this program belongs to. */
export function versionOfPackage(): string {
  const { version } = JSON.parse(readFileSync(new URL("../../package.json", import.meta.url), "utf8")) as {
    version: string;
  };
  return version;
}

/** The folder of the studio's program, which `npm run build` makes. */
export const STUDIO: string = fileURLToPath(new URL("../../dist/studio/", import.meta.url));

import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

/** The version of this package. */
export function versionOfPackage(): string {
  const { version } = JSON.parse(readFileSync(new URL("../../package.json", import.meta.url), "utf8")) as {
    version: string;
  };
  return version;
}

/** The directory of the documentation. */
export const DOCS: string = fileURLToPath(new URL("../../docs/", import.meta.url));

/** The directory of the built studio, which `npm run build` makes. */
export const STUDIO: string = fileURLToPath(new URL("../../dist/studio/", import.meta.url));

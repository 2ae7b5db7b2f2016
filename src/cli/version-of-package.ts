import { readFileSync } from "node:fs";

/** The version of the package that this program belongs to. */
export function versionOfPackage(): string {
  const { version } = JSON.parse(readFileSync(new URL("../../package.json", import.meta.url), "utf8")) as {
    version: string;
  };
  return version;
}

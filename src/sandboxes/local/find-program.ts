import { constants } from "node:fs";
import { access, stat } from "node:fs/promises";
import { delimiter, resolve } from "node:path";

/** Where a program is, looked for as a shell does; null when there is none that may be run. */
export async function findProgram(name: string, path: string, cwd: string): Promise<string | null> {
  const places = name.includes("/")
    ? [resolve(cwd, name)]
    : path.split(delimiter).map((each) => resolve(cwd, each, name));
  for (const place of places) if (await isProgram(place)) return place;
  return null;
}

async function isProgram(place: string): Promise<boolean> {
  try {
    await access(place, constants.X_OK);
    return (await stat(place)).isFile();
  } catch {
    return false;
  }
}

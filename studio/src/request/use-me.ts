import { createContext, useContext } from "react";
import type { Me } from "skein/client";

const NOTHING: Me["may"] = { approve: false, run: false, files: false };

/** The signed-in user and their rights. */
export const MeContext = createContext<Me | null>(null);

/** The signed-in user; null while unknown. */
export function useMe(): Me | null {
  return useContext(MeContext);
}

/** The rights of the user beside reading and writing their sessions. */
export function useMay(): Me["may"] {
  return useMe()?.may ?? NOTHING;
}

/** The explanation for each missing right. */
export const MAY_NOT: Readonly<Record<keyof Me["may"], string>> = {
  approve: "You may not approve calls; someone with that right has to.",
  run: "You may read and write sessions, but not run agents or models.",
  files: "You may not access the files of sessions.",
};

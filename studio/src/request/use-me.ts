import { createContext, useContext } from "react";
import type { Me } from "skein/client";

const NOTHING: Me["may"] = { approve: false, run: false, files: false };

/** Who the caller is, and what they may do. */
export const MeContext = createContext<Me | null>(null);

/** Who the caller is; null where that is not known. */
export function useMe(): Me | null {
  return useContext(MeContext);
}

/** What the caller may do beside reading and writing their sessions. */
export function useMay(): Me["may"] {
  return useMe()?.may ?? NOTHING;
}

/** Why something cannot be done, by the right that is missing. */
export const MAY_NOT: Readonly<Record<keyof Me["may"], string>> = {
  approve: "You may not answer this; it waits for someone who may.",
  run: "You may read and write here, and not make an agent or a model work.",
  files: "You may not reach the files of sessions.",
};

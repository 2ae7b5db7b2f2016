import { useEffect, useState } from "react";
import type { ContentPart } from "../../../src/session/message.ts";
import { useRoute } from "../shell/route.ts";
import { useClient } from "./use-client.ts";

/** An image or a file of a message. */
export type FileOf = Extract<ContentPart, { type: "image" | "file" }>;

/** Loads the bytes of an image or a file: from its message, or from the server if they are stored beside the log. */
export function useFileBytes(): (part: FileOf) => Promise<Uint8Array<ArrayBuffer>> {
  const client = useClient();
  const route = useRoute();
  const sessionId = route.page === "session" ? route.id : "";
  return async (part) => {
    if ("blob" in part) return new Uint8Array(await client.sessions.blob(sessionId, part));
    try {
      return Uint8Array.from(atob(part.data), (character) => character.charCodeAt(0));
    } catch {
      return new TextEncoder().encode(part.data);
    }
  };
}

/**
 * The URL of a picture: its data, or an object URL of the bytes once they are loaded, because a request for `src` would not have
 * the token. Null until then; `onMissing` is called if they cannot be loaded.
 */
export function usePictureUrl(part: FileOf, wanted: boolean, onMissing: () => void): string | null {
  const [loaded, setLoaded] = useState<string | null>(null);
  const load = useFileBytes();
  const blob = "blob" in part ? part.blob : null;
  useEffect(() => {
    if (blob === null || !wanted) return;
    let url: string | null = null;
    let isGone = false;
    load(part).then(
      (bytes) => {
        if (isGone) return;
        url = URL.createObjectURL(new Blob([bytes], { type: part.mediaType }));
        setLoaded(url);
      },
      () => {
        if (!isGone) onMissing();
      },
    );
    return () => {
      isGone = true;
      if (url !== null) URL.revokeObjectURL(url);
    };
    // The same blob has the same bytes; the other values are new objects with each rendering.
  }, [blob, wanted]);
  return "data" in part ? `data:${part.mediaType};base64,${part.data}` : loaded;
}

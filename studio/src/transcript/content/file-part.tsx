import { type ReactNode, useMemo, useState } from "react";
import type { ContentPart } from "../../../../src/session/message.ts";
import { isRaster } from "../../markdown/safe-url.ts";
import { visibleText } from "../../markdown/visible-text.ts";
import "./file-part.css";

type FileOf = Extract<ContentPart, { type: "image" | "file" }>;

/** A picture or file of a message; anything but raster pictures is only offered as a download. */
export function FilePart({ part }: { readonly part: FileOf }): ReactNode {
  const [broken, setBroken] = useState(false);
  const name = visibleText(part.name ?? (part.type === "image" ? "Picture" : "File"));
  const url = useMemo(() => `data:${part.mediaType};base64,${part.data}`, [part]);
  if (part.type === "image" && isRaster(part.mediaType) && !broken) {
    return <img className="transcript-image" src={url} alt={name} onError={() => setBroken(true)} />;
  }
  return (
    <button type="button" className="button transcript-file" onClick={() => keep(part)}>
      <span className="transcript-file-name">{name}</span>
      <span className="soft small">
        {visibleText(part.mediaType)}, {sizeOf(part.data)}, save
      </span>
    </button>
  );
}

function sizeOf(data: string): string {
  const bytes = Math.floor((data.length * 3) / 4);
  return bytes < 1024 ? `${bytes} B` : `${Math.round(bytes / 1024).toLocaleString("en")} KB`;
}

function keep({ data, name }: FileOf): void {
  let bytes: Uint8Array<ArrayBuffer>;
  try {
    bytes = Uint8Array.from(atob(data), (character) => character.charCodeAt(0));
  } catch {
    bytes = new TextEncoder().encode(data);
  }
  // As plain bytes: a browser that opens the file instead of saving it must not run it as a page.
  const url = URL.createObjectURL(new Blob([bytes], { type: "application/octet-stream" }));
  const link = document.createElement("a");
  link.href = url;
  link.download = name ?? "file";
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}

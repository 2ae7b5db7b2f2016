import { type ReactNode, useState } from "react";
import { attachmentBytes } from "../../../../src/session/message.ts";
import { isRaster } from "../../markdown/safe-url.ts";
import { visibleText } from "../../markdown/visible-text.ts";
import { useAction } from "../../request/use-action.ts";
import { type FileOf, useFileBytes, usePictureUrl } from "../../request/use-file-url.ts";
import { formatBytes } from "./call-output.ts";
import "./file-part.css";

/** Larger pictures are loaded only when they are saved. */
const SHOWN_BYTES_MAX = 20 * 1024 * 1024;

/** A picture or file of a message; anything but raster pictures is only offered as a download. */
export function FilePart({ part }: { readonly part: FileOf }): ReactNode {
  const [broken, setBroken] = useState(false);
  const name = visibleText(part.name ?? (part.type === "image" ? "Picture" : "File"));
  const isShown =
    part.type === "image" && isRaster(part.mediaType) && attachmentBytes(part) <= SHOWN_BYTES_MAX && !broken;
  const url = usePictureUrl(part, isShown, () => setBroken(true));
  const load = useFileBytes();
  const save = useAction(async () => keep(await load(part), part.name));
  if (isShown) {
    if (url === null) return <div className="transcript-image-loading small soft">Loading {name} …</div>;
    return <img className="transcript-image" src={url} alt={name} onError={() => setBroken(true)} />;
  }
  return (
    <button type="button" className="button transcript-file" disabled={save.busy} onClick={() => void save.run()}>
      <span className="transcript-file-name">{name}</span>
      <span className="soft small">
        {visibleText(part.mediaType)}, {formatBytes(attachmentBytes(part))},{" "}
        {save.error === null ? "save" : "not available"}
      </span>
    </button>
  );
}

function keep(bytes: Uint8Array<ArrayBuffer>, name: string | undefined): void {
  // Served as plain bytes, so that a browser that opens the file instead of saving it does not render it as a page.
  const url = URL.createObjectURL(new Blob([bytes], { type: "application/octet-stream" }));
  const link = document.createElement("a");
  link.href = url;
  link.download = name ?? "file";
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}

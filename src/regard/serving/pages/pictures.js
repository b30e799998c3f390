// The choice of an image: an example, a file, a drop, or the clipboard.

import { fill, html } from "/web/dom.js";
import { button, errorBox } from "/pages/parts.js";

const MAX_SIDE = 1024;

/**
 * Choose an image: examples as small images, a file, a drop, or a paste. `onImage` gets {uri, name}, where the name is
 * that of an example, or "" for an image of one's own. `mark` says which example is shown.
 */
export function imageInput(examples, onImage, { signal, drawing = false, hint = "or drop or paste one" }) {
  const problem = html("div");
  const thumbnails = examples.map((example) => {
    const picture = html("img", { src: example.image, alt: "", className: drawing ? "pixels" : "" });
    const label = `Example: ${example.caption}`;
    const pick = () => {
      fill(problem);
      onImage({ uri: example.image, name: example.name });
    };
    return button(picture, pick, { "aria-label": label, title: example.caption, "aria-pressed": "false" });
  });
  const mark = (name) =>
    thumbnails.forEach((each, index) => each.setAttribute("aria-pressed", String(examples[index].name === name)));
  const take = async (file) => {
    fill(problem);
    try {
      onImage({ uri: await fileUri(file), name: "" });
    } catch (error) {
      fill(problem, errorBox(error.message));
    }
  };
  const input = html("input", {
    type: "file",
    accept: "image/*",
    hidden: true,
    "aria-label": "Image file",
    onchange: () => input.files[0] && take(input.files[0]),
  });
  const choose = button("Choose an image …", () => input.click());
  const zone = html(
    "div.dropzone",
    {
      ondragover: (event) => {
        event.preventDefault();
        zone.classList.add("over");
      },
      ondragleave: () => zone.classList.remove("over"),
      ondrop: (event) => {
        event.preventDefault();
        zone.classList.remove("over");
        if (event.dataTransfer.files[0]) take(event.dataTransfer.files[0]);
      },
    },
    html("div.thumbnails", { role: "group", "aria-label": "Example images" }, thumbnails),
    html("div.own", choose, html("span.quiet", hint), input),
  );
  const paste = (event) => {
    const file = [...(event.clipboardData?.files ?? [])].find((each) => each.type.startsWith("image/"));
    if (file) take(file);
  };
  document.addEventListener("paste", paste, { signal });
  return { node: html("div", zone, problem), mark };
}

/** An image file as a data URI, made smaller where it is large; an Error in plain words where it is none. */
async function fileUri(file) {
  let bitmap;
  try {
    bitmap = await createImageBitmap(file);
  } catch {
    throw new Error(`${file.name || "This"} is not an image that the browser can open. Try a PNG or a JPEG.`);
  }
  const scale = Math.min(1, MAX_SIDE / Math.max(bitmap.width, bitmap.height));
  const canvas = html("canvas", {
    width: Math.max(1, Math.round(bitmap.width * scale)),
    height: Math.max(1, Math.round(bitmap.height * scale)),
  });
  const pen = canvas.getContext("2d");
  // What is transparent becomes white, as everywhere in regard; a JPEG would make it black.
  pen.fillStyle = "white";
  pen.fillRect(0, 0, canvas.width, canvas.height);
  pen.imageSmoothingQuality = "high";
  pen.drawImage(bitmap, 0, 0, canvas.width, canvas.height);
  bitmap.close();
  const small = canvas.width * canvas.height <= 128 * 128;
  return small ? canvas.toDataURL("image/png") : canvas.toDataURL("image/jpeg", 0.92);
}

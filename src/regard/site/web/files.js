// The files of models and of the runtime. Each is a script with its content in base64, since a page that was opened from a
// disk may load scripts, and nothing else.

const contents = new Map();

/** Called by the script of a file. */
function siteFile(name, base64) {
  contents.set(name, base64);
}

/** The bytes of a file. */
async function bytesOf(name) {
  const script = Object.assign(document.createElement("script"), { src: `${name}.js` });
  await new Promise((resolve, reject) => {
    script.onload = resolve;
    script.onerror = () => reject(new Error(`The file ${name}.js is missing.`));
    document.head.append(script);
  });
  script.remove();
  const base64 = contents.get(name);
  contents.delete(name);
  if (Uint8Array.fromBase64) return Uint8Array.fromBase64(base64);
  return Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
}

/** The files of a model, as Model.load takes them. */
function filesOf(model) {
  return async (name) => {
    const bytes = await bytesOf(`models/${model}/${name}`);
    return name.endsWith(".json") ? new TextDecoder().decode(bytes) : bytes;
  };
}

let runtime = null;

/** Start onnxruntime-web, once. */
function startRuntime() {
  runtime ??= (async () => {
    const [loader, wasm] = [await bytesOf("runtime/ort.mjs"), await bytesOf("runtime/ort.wasm")];
    ort.env.wasm.wasmPaths = { mjs: URL.createObjectURL(new Blob([loader], { type: "text/javascript" })) };
    ort.env.wasm.wasmBinary = wasm.buffer;
    // More threads need headers that a static host does not send.
    ort.env.wasm.numThreads = 1;
    ort.env.logLevel = "error";
  })();
  return runtime;
}

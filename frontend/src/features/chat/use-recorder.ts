import { useCallback, useEffect, useRef, useState } from "react";
import { toast } from "sonner";

export const LONGEST_SECONDS = 600;

type Recording = {
  recorder: MediaRecorder;
  /** The microphone is the browser's again once this is called. */
  release: () => void;
};

type Recorder = {
  /** Whole seconds so far; null while nothing is recorded. */
  seconds: number | null;
  /** How loud it is now, from 0 to 1. */
  level: number;
  start: () => Promise<void>;
  /** Ends it and hands over what was recorded. */
  finish: () => void;
  discard: () => void;
};

export const canRecord = () =>
  typeof MediaRecorder !== "undefined" && Boolean(navigator.mediaDevices?.getUserMedia);

/** Records the microphone for ten minutes at most; leaving the page lets go of it. */
export function useRecorder(onRecorded: (sound: File) => void): Recorder {
  const [seconds, setSeconds] = useState<number | null>(null);
  const [level, setLevel] = useState(0);
  const current = useRef<Recording | null>(null);
  const latest = useRef(onRecorded);
  latest.current = onRecorded;

  const end = useCallback((isKept: boolean) => {
    const recording = current.current;
    if (!recording) return;
    current.current = null;
    if (!isKept) recording.recorder.ondataavailable = null;
    recording.recorder.stop();
    recording.release();
    setSeconds(null);
    setLevel(0);
  }, []);
  useEffect(() => () => end(false), [end]);

  const start = async () => {
    if (current.current) return;
    try {
      const stream = await navigator.mediaDevices.getUserMedia({ audio: true });
      const recorder = new MediaRecorder(stream);
      recorder.ondataavailable = ({ data }) => {
        const type = recorder.mimeType || data.type;
        if (data.size > 0) latest.current(new File([data], "recording", { type }));
      };
      const stopMetering = metered(stream, setLevel);
      const startedAt = performance.now();
      const clock = setInterval(() => {
        const passed = Math.floor((performance.now() - startedAt) / 1000);
        if (passed >= LONGEST_SECONDS) end(true);
        else setSeconds(passed);
      }, 250);
      const release = () => {
        clearInterval(clock);
        stopMetering();
        for (const track of stream.getTracks()) track.stop();
      };
      current.current = { recorder, release };
      recorder.start();
      setSeconds(0);
    } catch (thrown) {
      toast.error(whyNot(thrown));
    }
  };
  return { seconds, level, start, finish: () => end(true), discard: () => end(false) };
}

/** Tells how loud `stream` is, once for each frame drawn, until it is told to stop. */
function metered(stream: MediaStream, tell: (level: number) => void): () => void {
  if (typeof AudioContext === "undefined") return () => {};
  const context = new AudioContext();
  const analyser = context.createAnalyser();
  analyser.fftSize = 512;
  context.createMediaStreamSource(stream).connect(analyser);
  const wave = new Uint8Array(analyser.fftSize);
  let frame = 0;
  const look = () => {
    analyser.getByteTimeDomainData(wave);
    // Silence is 128.
    tell(Math.max(...wave.map((value) => Math.abs(value - 128))) / 128);
    frame = requestAnimationFrame(look);
  };
  look();
  return () => {
    cancelAnimationFrame(frame);
    void context.close();
  };
}

function whyNot(thrown: unknown): string {
  switch (thrown instanceof DOMException ? thrown.name : "") {
    case "NotAllowedError":
      return "The browser doesn't let this page use the microphone. Allow it beside the address, then try again.";
    case "NotFoundError":
      return "No microphone was found. Connect one, then try again.";
    case "NotReadableError":
      return "The microphone is in use by another program. Close that one, then try again.";
    default:
      return "The microphone can't be used.";
  }
}

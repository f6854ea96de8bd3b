// React Native has no workers, and its bundler does not read `import.meta`.

export function startWorker() {}

/** The first SIGINT or SIGTERM is a request, the second one ends the process. */
export function onInterrupt(first: () => void): { asked(): boolean; remove(): void } {
  let asked = false
  const handler = () => {
    if (asked) process.exit(130)
    asked = true
    first()
  }
  process.on('SIGINT', handler)
  process.on('SIGTERM', handler)
  return {
    asked: () => asked,
    remove() {
      process.off('SIGINT', handler)
      process.off('SIGTERM', handler)
    },
  }
}

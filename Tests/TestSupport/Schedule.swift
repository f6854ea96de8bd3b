/// The choices of a simulation: random ones that it records, or the choices of an earlier run.
///
/// A simulation draws every number from here and calls ``step()`` before each of its steps. A failing run can then be
/// repeated without some of its steps, and with smaller numbers, until only the steps remain that the failure needs.
public final class Schedule {
    /// The numbers of each step. The first list holds the numbers that were drawn before the first step.
    typealias Numbers = [[Int]]

    private var random: SeededGenerator?
    private let given: Numbers
    private var place = (step: 0, number: 0)
    private(set) var made: Numbers = [[]]
    /// The story of the run, if it is wanted.
    private(set) var story: [String] = []
    private let isTold: Bool

    init(seed: UInt64) { (random, given, isTold) = (SeededGenerator(seed: seed), [], false) }

    init(repeating numbers: Numbers, isTold: Bool = false) {
        (random, given, self.isTold) = (nil, numbers, isTold)
    }

    /// Returns a number from 0 up to, but not including, `bound`. A repeated step that draws more numbers than it did
    /// before receives zeros.
    public func number(_ bound: Int) -> Int {
        let number: Int
        if random != nil {
            number = Int((random?.next() ?? 0) % UInt64(bound))
        } else {
            let step = place.step < given.count ? given[place.step] : []
            number = place.number < step.count ? step[place.number] % bound : 0
            place.number += 1
        }
        made[made.count - 1].append(number)
        return number
    }

    /// Returns how many steps to make: a random number of `range`, or the steps of the repeated run.
    public func count(_ range: ClosedRange<Int>) -> Int {
        random == nil ? max(given.count - 2, 0) : range.lowerBound + Int((random?.next() ?? 0) % UInt64(range.count))
    }

    /// Begins a step. The last step is the end of the simulation, which every run has.
    public func step() {
        made.append([])
        place = (place.step + 1, 0)
    }

    /// Adds a sentence to the story of the run.
    public func tell(_ text: @autoclosure () -> String) {
        if isTold { story.append("\(place.step). \(text())") }
    }

    // MARK: Runs

    /// Runs simulations until one fails.
    ///
    /// - Parameter repetitionsMax: The runs for making a failure smaller. Without the limit, a long schedule would take
    ///   minutes.
    /// - Parameter run: Runs a simulation, and returns the violated invariant or nil.
    /// - Returns: The seed and the story of the smallest failing run; nil if no run fails.
    public static func failure(
        seed: UInt64, runs: Int, repetitionsMax: Int = 20_000, _ run: (Schedule) -> String?
    ) -> String? {
        for number in 0..<UInt64(runs) {
            let schedule = Schedule(seed: seed &+ number)
            guard let first = run(schedule) else { continue }
            let smallest = smallest(schedule.made, repetitionsMax) { numbers in
                let repeated = Schedule(repeating: numbers)
                return run(repeated) == nil ? nil : repeated.made
            }
            let told = Schedule(repeating: smallest, isTold: true)
            let failure = run(told) ?? "the failure cannot be repeated: \(first)"
            let counts = "\(max(smallest.count - 2, 0)) of \(max(schedule.made.count - 2, 0)) steps"
            return (["seed \(seed &+ number), \(counts)"] + told.story + [failure]).joined(separator: "\n")
        }
        return nil
    }

    /// - Parameter fails: Repeats a run; returns the numbers that it used if it fails, and nil if it does not.
    private static func smallest(
        _ numbers: Numbers, _ repetitionsMax: Int, fails: (Numbers) -> Numbers?
    ) -> Numbers {
        var (best, left, isSmaller) = (numbers, repetitionsMax, true)
        func accept(_ numbers: Numbers) -> Bool {
            guard left > 0, let used = fails(numbers), isLess(used, best) else { return false }
            (best, isSmaller) = (used, true)
            return true
        }
        while isSmaller, left > 0 {
            isSmaller = false
            // Half of the steps, then a quarter, and so on, down to single ones.
            var length = max(best.count - 2, 1)
            while length > 0 {
                var start = 1
                while start + length < best.count {
                    left -= 1
                    let isShorter = accept(Array(best[..<start] + best[(start + length)...]))
                    start += isShorter ? 0 : length
                }
                length /= 2
            }
            for step in best.indices where step < best.count {
                for place in best[step].indices {
                    for less in [0, 1, 2, 4].map({ $0 == 0 ? 0 : best.number(step, place) - $0 }) {
                        // An accepted run may have drawn fewer numbers.
                        guard less >= 0, less < best.number(step, place) else { continue }
                        var smaller = best
                        smaller[step][place] = less
                        left -= 1
                        if accept(smaller) { break }
                    }
                }
            }
        }
        return best
    }

    private static func isLess(_ one: Numbers, _ other: Numbers) -> Bool {
        if one.count != other.count { return one.count < other.count }
        let sums = (one.joined().reduce(0, +), other.joined().reduce(0, +))
        if sums.0 != sums.1 { return sums.0 < sums.1 }
        return one.joined().count < other.joined().count
    }
}

extension Schedule.Numbers {
    /// Returns a number; 0 if a smaller run drew no number here.
    fileprivate func number(_ step: Int, _ place: Int) -> Int {
        step < count && place < self[step].count ? self[step][place] : 0
    }
}

import Visibility

extension TableFileReader {
    // MARK: Within a table

    /// Checks the members of a table against one another.
    mutating func check(_ table: TableDeclaration, at pointer: String) {
        checkNames(table, at: pointer)
        for (name, column) in table.related.sorted(by: { $0.key < $1.key }) {
            var source = column.column
            for _ in table.related where source != name { source = table.related[source]?.column ?? source }
            guard table.related[source] != nil else { continue }
            reject("\(pointer)/related/\(name)/of", "leads back to \(source) instead of a column of the row")
        }
        for (name, list) in [
            ("select", table.audience.select), ("insert", table.audience.insert), ("update", table.audience.update),
            ("delete", table.audience.delete),
        ] {
            for (index, entry) in list.enumerated() {
                checkCost(entry.template.columns, of: table, at: "\(pointer)/audience/\(name)/\(index)")
            }
        }
        for (index, group) in table.invalidates.enumerated() {
            check(group, of: table, at: "\(pointer)/invalidates/\(index)")
        }
        for (index, membership) in table.memberships.enumerated() {
            let place = "\(pointer)/memberships/\(index)"
            for column in [membership.subjectColumn, membership.grantColumn] where table.related[column] != nil {
                reject(place, "\(column) is a related column; a membership needs a column of the row itself")
            }
            if membership.subject.mayEqual(membership.grants) {
                reject("\(place)/grants", "\(membership.grants) can also be a subject, which makes an endless loop")
            }
        }
        let own = table.tenant
        if case .column(let name, let parent) = own {
            for column in [name, parent?.key].compactMap(\.self) where table.related[column] != nil {
                reject(
                    "\(pointer)/tenant",
                    "\(column) is a related column, which cannot be read before the tenant is known")
            }
        }
    }

    /// Checks that all names are declared columns, if columns are declared. Another name would be a column that no row
    /// has.
    private mutating func checkNames(_ table: TableDeclaration, at pointer: String) {
        guard let types = table.types else { return }
        func require(_ columns: [String], at place: String) {
            for column in columns where types[column] == nil && table.related[column] == nil {
                reject("\(pointer)/\(place)", "types does not declare the column \(column)")
            }
        }
        for (index, column) in table.primaryKey.enumerated() { require([column], at: "primaryKey/\(index)") }
        for (index, column) in table.columns.enumerated() { require([column], at: "columns/\(index)") }
        for (count, column) in table.counts.sorted(by: { $0.key < $1.key }) { require([column], at: "counts/\(count)") }
        for (name, column) in table.related.sorted(by: { $0.key < $1.key }) {
            require([column.column], at: "related/\(name)/of")
        }
        require([table.actorColumn].compactMap(\.self), at: "actor")
        require([table.originColumn].compactMap(\.self), at: "origin")
        if case .column(let name, let parent) = table.tenant {
            require([name, parent?.key].compactMap(\.self), at: "tenant")
        }
        func require(_ entries: [AudienceEntry], at place: String) {
            for (index, entry) in entries.enumerated() {
                require(entry.template.columns + entry.when.columns, at: "\(place)/\(index)")
            }
        }
        require(table.audience.select, at: "audience/select")
        for (index, group) in table.invalidates.enumerated() {
            require(group.columns, at: "invalidates/\(index)/columns")
            require(group.keys.flatMap(\.columns), at: "invalidates/\(index)/keys")
            require(group.audience ?? [], at: "invalidates/\(index)/audience")
        }
        for (index, membership) in table.memberships.enumerated() {
            require([membership.subjectColumn], at: "memberships/\(index)/subject")
            require([membership.grantColumn], at: "memberships/\(index)/grants")
            require(membership.when.columns, at: "memberships/\(index)/when")
        }
    }

    private mutating func check(_ group: InvalidationGroup, of table: TableDeclaration, at pointer: String) {
        for (index, column) in group.columns.enumerated() {
            if table.related[column] != nil {
                reject("\(pointer)/columns/\(index)", "\(column) is a related column, not a column of the row")
            } else if !table.columns.isEmpty, !table.columns.contains(column), !table.audienceColumns.contains(column) {
                reject(
                    "\(pointer)/columns/\(index)",
                    "\(column) is not listed in the table's columns, so its changes are not observed")
            }
        }
        for (index, key) in group.keys.enumerated() {
            checkCost(key.columns, of: table, at: "\(pointer)/keys/\(index)")
            for entry in group.audience ?? table.audience.select {
                let together = Set((key.columns + entry.template.columns).filter { table.related[$0] != nil })
                if together.count > 1, Set(key.columns.filter { table.related[$0] != nil }).count < 2 {
                    reject(
                        "\(pointer)/keys/\(index)",
                        "combined with \(entry.template) uses \(Self.list(together)): each can have many values, so every "
                            + "pair would become a key")
                }
            }
        }
        guard let audience = group.audience else { return }
        for (index, entry) in audience.enumerated() {
            checkCost(entry.template.columns, of: table, at: "\(pointer)/audience/\(index)")
            // An audience that may not read the row may learn only the values in its own key.
            guard !table.audience.select.contains(where: { $0.when.isEmpty && $0.template == entry.template })
            else { continue }
            if table.audience.select.contains(entry) { continue }
            for (place, key) in group.keys.enumerated() {
                for (part, content) in key.parts.enumerated() {
                    guard case .column(let column) = content, !entry.template.columns.contains(column) else { continue }
                    reject(
                        "\(pointer)/keys/\(place)/\(part)",
                        "reveals {\(column)} to \(entry.template), which may not read the row")
                }
            }
        }
    }

    /// Checks the number of keys. A related column has as many values as a subject has memberships; two related columns
    /// in one text would multiply them.
    private mutating func checkCost(_ columns: [String], of table: TableDeclaration, at place: String) {
        let related = Set(columns.filter { table.related[$0] != nil })
        if related.count > 1 {
            reject(place, "uses \(Self.list(related)): each can have many values, so every pair would become a key")
        }
    }

    private static func list(_ names: Set<String>) -> String {
        names.sorted().joined(separator: " and ")
    }

    // MARK: Between tables

    mutating func compare(_ tables: [Read], _ topics: [Topic], reserved: ReservedNames) {
        compareNames(tables)
        compareNames(topics, reserved: reserved.topics)
        let known = tables.compactMap(\.declaration)
        // A table that could not be read may contain the target of a reference.
        if known.count == tables.count { resolve(tables, known) }
        let audiences = topics.flatMap { topic in
            topic.declaration.audience.enumerated().map { ($0.element, "\(topic.pointer)/audience/\($0.offset)") }
        }
        compareTemplates(tables.flatMap(\.templates) + audiences, reserved: reserved.templates)
        let memberships = known.flatMap(\.memberships)
        if memberships.count > TableLimits.membershipsMax {
            reject(
                "/tables", "declare \(memberships.count) memberships; at most \(TableLimits.membershipsMax) are allowed"
            )
        } else if MembershipOrder(known).groups == nil {
            reject("/tables", "have memberships that grant each other's subjects, which makes an endless loop")
        }
    }

    private mutating func compareNames(_ tables: [Read]) {
        var seen: [String: String] = [:]
        var memberships: [String: String] = [:]
        for table in tables {
            guard let declaration = table.declaration else { continue }
            if let first = seen.updateValue(table.pointer, forKey: declaration.qualifiedName) {
                reject("\(table.pointer)/table", "\(declaration.qualifiedName) is already declared at \(first)")
            }
            for (index, membership) in declaration.memberships.enumerated() {
                let place = "\(table.pointer)/memberships/\(index)/name"
                if let first = memberships.updateValue(place, forKey: membership.name) {
                    reject(place, "\(membership.name) is already declared at \(first)")
                }
            }
        }
    }

    private mutating func compareNames(_ topics: [Topic], reserved: [String]) {
        var seen = Dictionary(reserved.map { ($0, "the service") }) { first, _ in first }
        for topic in topics {
            let prefix = topic.declaration.prefix
            if let first = seen.updateValue(topic.pointer, forKey: prefix) {
                reject("\(topic.pointer)/pattern", "topics that begin with \(prefix): already belong to \(first)")
            }
        }
    }

    private mutating func resolve(_ tables: [Read], _ known: [TableDeclaration]) {
        let memberships = Set(known.flatMap { $0.memberships.map(\.name) })
        for table in tables {
            guard let declaration = table.declaration else { continue }
            for (name, column) in declaration.related.sorted(by: { $0.key < $1.key })
            where !memberships.contains(column.membership) {
                reject(
                    "\(table.pointer)/related/\(name)/through",
                    "no table declares a membership named \(column.membership)")
            }
            guard case .column(_, let parent?) = declaration.tenant else { continue }
            let parents = known.filter { $0.name == parent.table }
            let place = "\(table.pointer)/tenant/through"
            guard parents.count == 1, let first = parents.first else {
                reject(
                    place,
                    parents.isEmpty
                        ? "no table is named \(parent.table)" : "the table name \(parent.table) exists in two schemas")
                continue
            }
            if first.memberships.isEmpty || first.primaryKey.count != 1 {
                reject(
                    place,
                    "\(parent.table) must declare a membership and have a single key column: otherwise its rows are not stored"
                )
            }
        }
    }

    /// Finds pairs of templates with different meanings that could make the same key. Each would open the other's rows.
    private mutating func compareTemplates(
        _ templates: [(AudienceTemplate, String)], reserved: [AudienceTemplate]
    ) {
        var seen: [String: (template: AudienceTemplate, place: String)] = [:]
        for template in reserved where seen[template.shape] == nil { seen[template.shape] = (template, "the service") }
        for (template, place) in templates where seen[template.shape] == nil {
            let others = seen.values.sorted { ($0.place, "\($0.template)") < ($1.place, "\($1.template)") }
            for other in others where template.mayEqual(other.template) {
                reject(
                    place,
                    "\(template) can produce the same key as \(other.template) of \(other.place), with a different meaning"
                )
            }
            seen[template.shape] = (template, place)
        }
    }
}

extension TableFileReader.Read {
    /// The templates of a table, with their places.
    fileprivate var templates: [(AudienceTemplate, String)] {
        guard let declaration else { return [] }
        var templates = declaration.audience.select.enumerated().map {
            ($0.element.template, "\(pointer)/audience/select/\($0.offset)")
        }
        for (index, group) in declaration.invalidates.enumerated() {
            templates += (group.audience ?? []).enumerated().map {
                ($0.element.template, "\(pointer)/invalidates/\(index)/audience/\($0.offset)")
            }
        }
        for (index, membership) in declaration.memberships.enumerated() {
            templates.append((membership.subject, "\(pointer)/memberships/\(index)/subject"))
            templates.append((membership.grants, "\(pointer)/memberships/\(index)/grants"))
        }
        return templates
    }
}
